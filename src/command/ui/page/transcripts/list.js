/** Makes the list of episodes, which shows a part of all episodes and has buttons for earlier and later ones. */
import { el, rowsIn } from "../parts/dom.js"
import { counted, number } from "../parts/format.js"
import { levelOf, makeAdvantage } from "./tokens.js"

export const endingText = ({ ending, reason, failed = null }) => {
  if (failed) return "failed"
  if (ending === null) return "goes on"
  return reason ? `${ending} (${reason})` : ending
}

const nameOf = ({ phase, seen, contestant, id, number: place }) => {
  if (phase === "train") return `train ${place}`
  return phase === "validation" ? `${contestant ?? `val ${seen}`} · ${place}` : (id ?? String(place))
}

/** Returns a text that only the episodes of the same group share. */
const groupOf = (episode) => (episode?.trained ? `${episode.trained.step} ${episode.trained.group}` : undefined)

/** Makes the answer of an episode, coloured by its advantage, and the advantage as a number. */
const answerOf = ({ answer, advantage }, largest) => {
  const text = answer === null ? el("span.quiet", "no answer") : answer
  if (advantage === null) return el("span.how", text)
  return [
    el("span.answer", el("span", { class: `token ${levelOf(advantage, largest)}` }, text)),
    makeAdvantage(advantage, largest),
  ]
}

/** Makes the list. `address` returns a link to an episode; `more` loads earlier (-1) or later (1) episodes. */
export const makeEpisodeList = ({ address, more }) => {
  const rows = el("ol.episodeList")
  const button = (text, way) => el("button.button.more", { onclick: () => more(way) }, text)
  const [earlier, later] = [button("Earlier ones", -1), button("More", 1)]
  const nothing = el("p.quiet", "None of the episodes is like that.")
  const element = el("nav.episodeNav", { "aria-label": "Episodes" }, earlier, rows, later, nothing)
  const fill = rowsIn(rows)
  let marked
  /** The largest absolute advantage in the run, and whether the groups in the shown list have headings. */
  let largest = null
  let hasHeadings = false

  const row = (episode) => {
    const name = nameOf(episode)
    const { key, env, player, return: total, length, delegated, failed, trained } = episode
    const steps = counted(length, "step")
    const below = delegated === 0 ? "" : `, ${delegated} delegated`
    // The heading of a group contains its task, and therefore the name of its env.
    const isGrouped = hasHeadings && trained !== null
    const link = el(
      "a",
      { href: address({ episode: key }), "data-key": key, class: failed ? "failed" : "" },
      el("span.what", el("b", name), env !== name && !isGrouped && ` ${env}`, player !== null && ` · ${player}`),
      el("span.total", { title: "return" }, number(total)),
      trained === null ? el("span.quiet.how", `${steps}, ${endingText(episode)}${below}`) : answerOf(trained, largest),
    )
    return el("li", link)
  }

  /** Makes the heading above the episodes of a group, which all answer the same task. */
  const headingOf = ({ env, trained: { step, group, task } }) =>
    el(
      "li.groupHead",
      el("b", `Step ${number(step)}, group ${group}`),
      ` ${env}`,
      task !== null && el("span.task", task),
    )

  const mark = (key) => {
    for (const link of rows.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current")
    const link = key === undefined ? null : rows.querySelector(`[data-key="${CSS.escape(key)}"]`)
    link?.setAttribute("aria-current", "true")
    if (link === null || link === undefined || key === marked) return
    marked = key
    // scrollIntoView would also scroll the page; only the list must scroll.
    const [box, inner] = [element.getBoundingClientRect(), link.getBoundingClientRect()]
    if (inner.top < box.top) element.scrollTop -= box.top - inner.top
    if (inner.bottom > box.bottom) element.scrollTop += inner.bottom - box.bottom
  }

  return {
    element,
    mark,
    /** Shows a part of the list in an order, and marks the open episode. */
    show: ({ episodes, from, matching, largest: ofRun }, { episode: key, order }) => {
      largest = ofRun
      hasHeadings = order === "oldest" || order === "newest"
      const focused = document.activeElement?.closest(".episodeList a")?.getAttribute("data-key")
      const contentOf = (episode) => [episode, address({ episode: episode.key })]
      const rowsOf = (one, place) => {
        const own = { key: one.key, content: [...contentOf(one), largest, hasHeadings], make: () => row(one) }
        if (!hasHeadings || one.trained === null || groupOf(one) === groupOf(episodes[place - 1])) return [own]
        return [{ key: `before ${one.key}`, content: one, make: () => headingOf(one) }, own]
      }
      fill(episodes.flatMap(rowsOf))
      earlier.hidden = from === 0
      later.hidden = from + episodes.length >= matching
      nothing.hidden = episodes.length > 0
      mark(key)
      if (focused) rows.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true })
    },
  }
}
