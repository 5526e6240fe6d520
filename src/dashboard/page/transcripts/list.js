/** Makes the list of episodes, which shows a part of all episodes and has buttons for earlier and later ones. */
import { el, rowsIn } from "../parts/dom.js"
import { counted, number } from "../parts/format.js"

export const endingText = ({ ending, reason, failed = null }) =>
  failed ? "failed" : ending === null ? "goes on" : reason ? `${ending} (${reason})` : ending

const nameOf = ({ phase, seen, contestant, id, number: place }) => {
  if (phase === "train") return `train ${place}`
  return phase === "validation" ? `${contestant ?? `val ${seen}`} · ${place}` : (id ?? String(place))
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

  const row = (episode) => {
    const name = nameOf(episode)
    const { key, env, player, return: total, length, delegated, failed } = episode
    const steps = counted(length, "step")
    const below = delegated === 0 ? "" : `, ${delegated} delegated`
    const link = el(
      "a",
      { href: address({ episode: key }), "data-key": key, class: failed ? "failed" : "" },
      el("span.what", el("b", name), env !== name && ` ${env}`, player !== null && ` · ${player}`),
      el("span.total", { title: "return" }, number(total)),
      el("span.quiet.how", `${steps}, ${endingText(episode)}${below}`),
    )
    return el("li", link)
  }

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
    show: ({ episodes, from, matching }, key) => {
      const focused = document.activeElement?.closest(".episodeList a")?.getAttribute("data-key")
      const contentOf = (episode) => [episode, address({ episode: episode.key })]
      fill(episodes.map((one) => ({ key: one.key, content: contentOf(one), make: () => row(one) })))
      earlier.hidden = from === 0
      later.hidden = from + episodes.length >= matching
      nothing.hidden = episodes.length > 0
      mark(key)
      if (focused) rows.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true })
    },
  }
}
