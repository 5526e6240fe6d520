/**
 * Makes the section of a run's page with the transcripts of its agents: the list of episodes on the left and one
 * episode on the right. The address contains the list's conditions and the episode.
 */
import { runAddress } from "../address.js"
import { fetchEpisodes, fetchTranscript } from "../data.js"
import { choice, el, toggle } from "../parts/dom.js"
import { counted, number } from "../parts/format.js"
import { makeTranscript } from "./transcript.js"
import { makeEpisodeList } from "./list.js"
import { makeLegend } from "./tokens.js"

/** The number of episodes in one request. */
const pageSize = 100

const orders = [
  ["oldest", "oldest first"],
  ["newest", "newest first"],
  ["lowest", "lowest return first"],
  ["highest", "highest return first"],
]
const advantageOrders = [
  ["lowestAdvantage", "lowest advantage first"],
  ["highestAdvantage", "highest advantage first"],
]

/** Matches the files of a run whose lines hold episodes: if one changes, the episodes are read again. */
const relevant = /^(?:rollouts|outcomes|samples)\.jsonl$|(?:^|\/)(?:rollouts|scores)\/.+\.jsonl$/

/** Makes the section of the run with a path. It calls `seen` after the user has changed what is shown. */
export const makeTranscripts = (state, seen, run) => {
  const controls = el("div.controls")
  const status = el("p.quiet.line.count", { role: "status" })
  const legend = el("div.slot")
  const problem = el("p.problem", { role: "alert" })
  const address = (change) => runAddress(run, state.view, { ...state.transcripts, turn: undefined, ...change })
  const list = makeEpisodeList({ address, more: (way) => extend(way) })
  const turned = (turn) => {
    state.transcripts.turn = turn
    seen("turn")
  }
  const transcript = makeTranscript({ address, step: (by) => stepEpisode(by), turned })
  const element = el(
    "section.card.talk",
    { hidden: true },
    el("h2", "Transcripts"),
    controls,
    status,
    legend,
    problem,
    el("div.transcripts", list.element, transcript.element),
  )

  let files = ""
  let page
  let closed = false
  let isFirst = true
  /** The conditions of the list that is shown (`listed`), and the key of the episode that is shown (`read`). */
  let listed
  let read

  const filters = () => {
    const { text, phase, least, most, leastAdvantage, mostAdvantage, failed, order } = state.transcripts
    return { text, phase, least, most, leastAdvantage, mostAdvantage, failed, order }
  }

  /** The list's requests run one after another, since otherwise the answer to an older request could arrive last. */
  let queue = Promise.resolve()
  const inTurn = (action) => {
    queue = queue.then(async () => {
      if (closed) return
      try {
        await action()
        if (!closed) problem.textContent = ""
      } catch (error) {
        if (!closed) problem.textContent = error.message
      }
    })
    return queue
  }

  /** Reads the list by the current conditions; with `again`, also if it is shown, since it may have new episodes. */
  const load = (again) =>
    inTurn(async () => {
      const wanted = JSON.stringify(filters())
      const same = wanted === listed && page !== undefined
      if (same && !again) return present()
      if (!same) status.textContent = "Looking …"
      const part = same
        ? { from: page.from, count: Math.min(1000, Math.max(pageSize, page.episodes.length)) }
        : { from: 0, count: pageSize, at: page === undefined ? state.transcripts.episode : undefined }
      const found = await fetchEpisodes(run, { ...filters(), ...part }, state.live)
      // The conditions have changed meanwhile; the next request is for the new ones.
      if (closed || wanted !== JSON.stringify(filters())) return
      listed = wanted
      page = found
      present()
    })

  /** Reads the part of the list before or after the part that is shown. */
  const extend = (way) =>
    inTurn(async () => {
      // The conditions have changed, so another list is requested.
      if (JSON.stringify(filters()) !== listed) return
      const from = way < 0 ? Math.max(0, page.from - pageSize) : page.from + page.episodes.length
      const count = way < 0 ? page.from - from : pageSize
      if (count === 0 || from >= page.matching) return
      const found = await fetchEpisodes(run, { ...filters(), from, count }, state.live)
      if (closed || JSON.stringify(filters()) !== listed) return
      const episodes = way < 0 ? [...found.episodes, ...page.episodes] : [...page.episodes, ...found.episodes]
      page = { ...found, from: way < 0 ? from : page.from, episodes }
      present()
    })

  const present = () => {
    element.hidden = page.total === 0
    if (page.total === 0) return
    const all = counted(page.total, "episode")
    status.textContent = page.matching === page.total ? all : `${number(page.matching)} of ${all}`
    drawControls()
    list.show(page, state.transcripts)
    const [only] = page.total === 1 ? page.episodes : []
    if (only !== undefined && state.transcripts.episode === undefined) {
      // The user has not chosen the episode, so the page doesn't scroll to it and the address doesn't name it.
      isFirst = false
      state.transcripts.episode = only.key
      list.mark(only.key)
      void open(false)
    }
  }

  const choose = (key, control) => {
    Object.assign(state.transcripts, { episode: key, turn: undefined })
    seen(control)
    list.mark(key)
    return open(false)
  }

  const stepEpisode = async (by) => {
    const { episode } = state.transcripts
    const place = page.episodes.findIndex(({ key }) => key === episode)
    const next = place < 0 ? 0 : place + by
    if (next < 0 && page.from > 0) {
      const before = page.from
      await extend(-1)
      return step(before - page.from - 1)
    }
    if (next >= page.episodes.length && page.from + page.episodes.length < page.matching) await extend(1)
    return step(next)
  }
  const step = async (place) => {
    const next = page.episodes[place]
    if (next === undefined) return
    await choose(next.key, "episode")
    transcript.element.focus({ preventScroll: true })
  }

  /** Selects the next turn. If no episode is chosen, that is the first turn of the first episode. */
  const nextTurn = async () => {
    if (state.transcripts.episode === undefined) await stepEpisode(1)
    transcript.stepTurn(1)
  }

  /** Reads the chosen episode; with `again`, also if it is shown, since it may have new turns. */
  const open = async (again) => {
    const { episode, turn } = state.transcripts
    if (episode === undefined) {
      isFirst = false
      read = undefined
      return transcript.show(undefined)
    }
    if (read === episode && !again) return transcript.turnTo(turn)
    const isNew = read !== episode
    read = episode
    if (isNew) transcript.say("Reading …")
    const found = await fetchTranscript(run, episode).catch((error) => ({ error }))
    if (closed || state.transcripts.episode !== episode) return
    if (found.error !== undefined) {
      read = undefined
      const { status, message } = found.error
      return transcript.say(status === 404 ? `There is no episode “${episode}” here.` : message)
    }
    transcript.show(found, isNew)
    if (!isNew) return
    transcript.turnTo(turn)
    // A link to an episode scrolls to it.
    if (isFirst && turn === undefined) element.scrollIntoView({ block: "start" })
    isFirst = false
  }

  const search = el("input.find", {
    type: "search",
    placeholder: "a word, a name, a number",
    oninput: () => changed({ text: search.value }, "text"),
  })
  const bound = (name, label) => {
    const field = el("input.bound", {
      type: "number",
      step: "any",
      oninput: () => field.validity.valid && changed({ [name]: field.value }, name),
    })
    return [name, field, el("label.field", el("span", label), field)]
  }
  const bounds = [
    bound("least", "return from"),
    bound("most", "to"),
    bound("leastAdvantage", "advantage from"),
    bound("mostAdvantage", "to"),
  ]
  const phases = el("div.slot")
  const order = el("div.slot")
  const failed = el("div.slot")
  controls.append(
    el("label.field.grow", el("span", "find in what was said and seen"), search),
    phases,
    ...bounds.map(([, , field]) => field),
    order,
    failed,
  )
  let timer
  const changed = (change, control) => {
    Object.assign(state.transcripts, change)
    seen(control)
    // Wait until the user has paused typing.
    clearTimeout(timer)
    timer = setTimeout(() => void load(false), control === undefined ? 0 : 200)
  }
  let drawnControls
  const drawControls = () => {
    const { phase, text } = state.transcripts
    if (document.activeElement !== search) search.value = text
    for (const [name, field] of bounds) {
      if (document.activeElement !== field) field.value = state.transcripts[name]
    }
    const hasAdvantages = (page?.largest ?? null) !== null
    for (const [name, , label] of bounds) if (name.endsWith("Advantage")) label.hidden = !hasAdvantages
    const now = JSON.stringify([page?.groups, phase, state.transcripts.order, state.transcripts.failed, page?.largest])
    if (now === drawnControls) return
    drawnControls = now
    const options = phaseOptions(page?.groups ?? [])
    if (!options.some(([value]) => value === phase)) options.push([phase, phase])
    phases.replaceChildren(
      options.length > 2 || phase !== "" ? choice("phase", options, phase, (value) => changed({ phase: value })) : "",
    )
    const choices = hasAdvantages ? [...orders, ...advantageOrders] : orders
    order.replaceChildren(choice("order", choices, state.transcripts.order, (value) => changed({ order: value })))
    legend.replaceChildren(hasAdvantages ? makeLegend(page.largest, "episode") : "")
    failed.replaceChildren(toggle("failed only", state.transcripts.failed, (value) => changed({ failed: value })))
  }

  const onKey = (event) => {
    if (element.hidden || event.ctrlKey || event.metaKey || event.altKey) return
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return
    const actions = {
      j: () => nextTurn(),
      k: () => transcript.stepTurn(-1),
      J: () => stepEpisode(1),
      K: () => stepEpisode(-1),
      "/": () => search.focus(),
    }
    const action = actions[event.key]
    if (action === undefined) return
    event.preventDefault()
    action()
  }
  document.addEventListener("keydown", onKey)
  let refreshed = Promise.resolve()
  let waiting = false
  /** Reads the episodes of a run in progress again, after the last request has been answered. */
  const refresh = () => {
    if (waiting) return
    waiting = true
    const all = async () => {
      waiting = false
      await load(true)
      await open(true)
    }
    refreshed = refreshed.then(all, all)
  }

  return {
    element,
    show: (detail) => {
      const now = JSON.stringify(detail.files.filter(({ path }) => relevant.test(path)))
      if (now === files) return
      files = now
      refresh()
    },
    restore: () => {
      if (page === undefined) return
      drawControls()
      list.mark(state.transcripts.episode)
      void load(false)
      void open(false)
    },
    close: () => {
      closed = true
      clearTimeout(timer)
      document.removeEventListener("keydown", onKey)
    },
  }
}

const phaseOptions = (groups) => {
  const withCount = (text, episodes) => `${text} (${number(episodes)})`
  const sum = (some) => some.reduce((total, { episodes }) => total + episodes, 0)
  const validations = groups.filter(({ seen }) => seen !== null)
  return [
    ["", withCount("all", sum(groups))],
    ...groups.filter(({ seen }) => seen === null).map(({ name, episodes }) => [name, withCount(names[name] ?? name, episodes)]), // prettier-ignore
    // All episodes of an evaluation are validations, so the choice “all” is enough.
    ...(validations.length > 1 && validations.some(({ contestant }) => contestant === null) ? [["validation", withCount("all validations", sum(validations))]] : []), // prettier-ignore
    ...validations.map(({ name, seen, contestant, episodes }) => [name, withCount(contestant ?? `validation after ${seen}`, episodes)]), // prettier-ignore
  ]
}

const names = { train: "training" }
