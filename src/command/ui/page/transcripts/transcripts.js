/**
 * Makes the section of a run's page with the transcripts of its agents: the list of episodes on the left and one episode on
 * the right. The address of the page contains the conditions of the list and the episode.
 */
import { runAddress } from "../address.js"
import { fetchEpisodes, fetchTranscript } from "../data.js"
import { el } from "../parts/dom.js"
import { counted, number } from "../parts/format.js"
import { makeControls } from "./controls.js"
import { makeTranscript } from "./transcript.js"
import { makeEpisodeList } from "./list.js"

/** The number of episodes in one request. */
const pageSize = 100

/** Matches the files of a run whose lines contain episodes. If such a file changes, the episodes are read again. */
const relevant = /^(?:rollouts|outcomes|samples)\.jsonl$|(?:^|\/)(?:rollouts|scores)\/.+\.jsonl$/

/** Makes the section of the run with the given path. It calls `seen` after the user has changed what is shown. */
export const makeTranscripts = (state, seen, run) => {
  const section = makeSection(state, seen, run)
  const onKey = (event) => pressed(section, event)
  document.addEventListener("keydown", onKey)
  return {
    element: section.element,
    show: (detail) => {
      const now = JSON.stringify(detail.files.filter(({ path }) => relevant.test(path)))
      if (now === section.files) return
      section.files = now
      refresh(section)
    },
    restore: () => {
      if (section.page === undefined) return
      section.controls.draw(section.page)
      section.list.mark(state.transcripts.episode)
      void load(section, false)
      void open(section, false)
    },
    close: () => {
      section.closed = true
      clearTimeout(section.timer)
      document.removeEventListener("keydown", onKey)
    },
  }
}

/** Makes the state of the section: its elements, what they show, and the requests. All functions below work on this state. */
const makeSection = (state, seen, run) => {
  const address = (change) => runAddress(run, state.view, { ...state.transcripts, turn: undefined, ...change })
  const turned = (turn) => {
    state.transcripts.turn = turn
    seen("turn")
  }
  const section = {
    state,
    seen,
    run,
    element: el("section.card.talk", { hidden: true }),
    controls: makeControls(state, (change, control) => changed(section, change, control)),
    status: el("p.quiet.line.count", { role: "status" }),
    problem: el("p.problem", { role: "alert" }),
    list: makeEpisodeList({ address, more: (way) => extend(section, way) }),
    transcript: makeTranscript({ address, step: (by) => stepEpisode(section, by), turned }),
    /** The run's files that contain episodes, as JSON. */
    files: "",
    /** The part of the list that is shown, and the conditions with which it was read, as JSON. */
    page: undefined,
    listed: undefined,
    /** The key of the episode that is shown. */
    read: undefined,
    /**
     * Whether no episode has been shown yet. Only the first one is scrolled to, when the user follows a link to an episode.
     */
    isFirst: true,
    closed: false,
    /**
     * The requests for the list run one after another, because otherwise the answer to an older request could arrive last.
     */
    queue: Promise.resolve(),
    /** The last refresh, and whether another one is waiting for its end. */
    refreshed: Promise.resolve(),
    isWaiting: false,
    timer: undefined,
  }
  const { element, controls, status, problem, list, transcript } = section
  const both = el("div.transcripts", list.element, transcript.element)
  element.append(el("h2", "Transcripts"), controls.element, status, controls.legend, problem, both)
  return section
}

// --- The list ---

const filtersOf = ({ text, phase, least, most, leastAdvantage, mostAdvantage, failed, order }) => ({
  text,
  phase,
  least,
  most,
  leastAdvantage,
  mostAdvantage,
  failed,
  order,
})

/** Runs a request after the earlier ones, and shows its error if it fails. */
const inTurn = (section, request) => {
  const run = async () => {
    if (section.closed) return
    try {
      await request()
      if (!section.closed) section.problem.textContent = ""
    } catch (error) {
      if (!section.closed) section.problem.textContent = error.message
    }
  }
  section.queue = section.queue.then(run)
  return section.queue
}

/**
 * Requests a part of the list. Returns undefined if the conditions have changed in the meantime, because the next request
 * then uses the new ones.
 */
const fetchPart = async (section, part) => {
  const { state, run } = section
  const filters = filtersOf(state.transcripts)
  const page = await fetchEpisodes(run, { ...filters, ...part }, state.live)
  const isStale = JSON.stringify(filters) !== JSON.stringify(filtersOf(state.transcripts))
  return section.closed || isStale ? undefined : page
}

/**
 * Reads the list with the current conditions. With `again`, it is read even if it is shown already, since it may have new
 * episodes.
 */
const load = (section, again) =>
  inTurn(section, async () => {
    const { state, page } = section
    const wanted = JSON.stringify(filtersOf(state.transcripts))
    const same = wanted === section.listed && page !== undefined
    if (same && !again) return present(section)
    if (!same) section.status.textContent = "Looking …"
    const part = same
      ? { from: page.from, count: Math.min(1000, Math.max(pageSize, page.episodes.length)) }
      : { from: 0, count: pageSize, at: page === undefined ? state.transcripts.episode : undefined }
    const read = await fetchPart(section, part)
    if (read === undefined) return
    section.listed = wanted
    section.page = read
    present(section)
  })

/** Reads the part of the list before or after the part that is shown. */
const extend = (section, way) =>
  inTurn(section, async () => {
    const { page } = section
    // The conditions have changed, so another list will be requested.
    if (JSON.stringify(filtersOf(section.state.transcripts)) !== section.listed) return
    const from = way < 0 ? Math.max(0, page.from - pageSize) : page.from + page.episodes.length
    const count = way < 0 ? page.from - from : pageSize
    if (count === 0 || from >= page.matching) return
    const read = await fetchPart(section, { from, count })
    if (read === undefined) return
    const episodes = way < 0 ? [...read.episodes, ...page.episodes] : [...page.episodes, ...read.episodes]
    section.page = { ...read, from: way < 0 ? from : page.from, episodes }
    present(section)
  })

const present = (section) => {
  const { state, element, page } = section
  element.hidden = page.total === 0
  if (page.total === 0) return
  const all = counted(page.total, "episode")
  section.status.textContent = page.matching === page.total ? all : `${number(page.matching)} of ${all}`
  section.controls.draw(page)
  section.list.show(page, state.transcripts)
  const [only] = page.total === 1 ? page.episodes : []
  if (only === undefined || state.transcripts.episode !== undefined) return
  // The user has not chosen the episode, so the page doesn't scroll to it and the address doesn't name it.
  section.isFirst = false
  state.transcripts.episode = only.key
  section.list.mark(only.key)
  void open(section, false)
}

/** Reads the list with a condition that the user has changed. For a text field, it waits until the user has paused typing. */
const changed = (section, change, control) => {
  Object.assign(section.state.transcripts, change)
  section.seen(control)
  clearTimeout(section.timer)
  section.timer = setTimeout(() => void load(section, false), control === undefined ? 0 : 200)
}

/** Reads the episodes of a run in progress again, after the last request has been answered. */
const refresh = (section) => {
  if (section.isWaiting) return
  section.isWaiting = true
  const all = async () => {
    section.isWaiting = false
    await load(section, true)
    await open(section, true)
  }
  section.refreshed = section.refreshed.then(all, all)
}

// --- The episode ---

/** Reads the chosen episode. With `again`, it is read even if it is shown already, since it may have new turns. */
const open = async (section, again) => {
  const { state, transcript } = section
  const { episode, turn } = state.transcripts
  if (episode === undefined) {
    section.isFirst = false
    section.read = undefined
    return transcript.show(undefined)
  }
  if (section.read === episode && !again) return transcript.turnTo(turn)
  const isNew = section.read !== episode
  section.read = episode
  if (isNew) transcript.say("Reading …")
  const fetched = await fetchTranscript(section.run, episode).catch((error) => ({ error }))
  if (section.closed || state.transcripts.episode !== episode) return
  if (fetched.error !== undefined) {
    section.read = undefined
    const { status, message } = fetched.error
    return transcript.say(status === 404 ? `There is no episode “${episode}” here.` : message)
  }
  transcript.show(fetched, isNew)
  if (!isNew) return
  transcript.turnTo(turn)
  // A link to an episode scrolls to it.
  if (section.isFirst && turn === undefined) section.element.scrollIntoView({ block: "start" })
  section.isFirst = false
}

/**
 * Opens the episode that is `by` positions after the one that is shown. If the list doesn't contain that one, opens the
 * first.
 */
const stepEpisode = async (section, by) => {
  const { page } = section
  const place = page.episodes.findIndex(({ key }) => key === section.state.transcripts.episode)
  const next = place < 0 ? 0 : place + by
  if (next < 0 && page.from > 0) {
    await extend(section, -1)
    return openAt(section, page.from - section.page.from - 1)
  }
  if (next >= page.episodes.length && page.from + page.episodes.length < page.matching) await extend(section, 1)
  return openAt(section, next)
}

/** Opens the episode at a position of the list, if there is one. */
const openAt = async (section, place) => {
  const { state, list, transcript } = section
  const next = section.page.episodes[place]
  if (next === undefined) return
  Object.assign(state.transcripts, { episode: next.key, turn: undefined })
  section.seen("episode")
  list.mark(next.key)
  await open(section, false)
  transcript.element.focus({ preventScroll: true })
}

/** Selects the next turn. If no episode is chosen, that is the first turn of the first episode. */
const nextTurn = async (section) => {
  if (section.state.transcripts.episode === undefined) await stepEpisode(section, 1)
  section.transcript.stepTurn(1)
}

const keys = {
  j: nextTurn,
  k: ({ transcript }) => transcript.stepTurn(-1),
  J: (section) => stepEpisode(section, 1),
  K: (section) => stepEpisode(section, -1),
  "/": ({ controls }) => controls.search.focus(),
}

const pressed = (section, event) => {
  if (section.element.hidden || event.ctrlKey || event.metaKey || event.altKey) return
  if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return
  const action = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined
  if (action === undefined) return
  event.preventDefault()
  action(section)
}
