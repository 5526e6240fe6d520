/** Makes the table of runs: groups that can be opened, columns that sort, and boxes that choose runs for the charts. */
import { runAddress } from "../address.js"
import { el, rowsIn } from "../parts/dom.js"
import { counted, number } from "../parts/format.js"
import { seededTitle, titleOf } from "../parts/runTexts.js"
import { columnOf, isSetting } from "./columns.js"

/** The table shows at most this many rows, until the user presses a button that shows the others. */
const mostRows = 200

/** Makes the table. It calls `sortBy`, `select` or `expand` when the user clicks a heading, a box or a group. */
export const makeTable = ({ sortBy, select, expand }) => {
  const body = el("tbody")
  const head = el("tr")
  const table = el("table.runs", { "aria-label": "Runs" }, el("thead", head), body)
  const more = el("button.button.more", { hidden: true, onclick: () => ((all = true), show(last)) })
  const element = el("div.table", table, more)
  let all = false
  let last
  const fill = rowsIn(body)

  const heading = (sort, column, text, kind) => {
    const sorted = sort.by === column
    const arrow = sorted ? (sort.descending ? " ▾" : " ▴") : ""
    const button = el("button", { id: `sort-${column}`, onclick: () => sortBy(column) }, text + arrow)
    const direction = sorted ? (sort.descending ? "descending" : "ascending") : undefined
    return el("th", { scope: "col", class: kind, "aria-sort": direction }, button)
  }

  const box = (key, label, color) => {
    const input = el("input", {
      type: "checkbox",
      id: `box-${key}`,
      checked: color !== undefined,
      "aria-label": `Draw ${label}`,
      style: color && { accentColor: color },
      onchange: () => select(key, input.checked),
    })
    return el("td.box", { style: color && { boxShadow: `inset 4px 0 ${color}` } }, input)
  }

  const cells = (item) =>
    last.columns.map((key) => {
      const { kind, cell } = columnOf(key)
      return el("td", { class: kind }, cell(item))
    })

  const runRow = (run, color, inGroup) =>
    el(
      "tr",
      { class: inGroup ? "member" : "" },
      box(run.path, seededTitle(run), color),
      el(
        "td.name",
        el(
          "a",
          { href: runAddress(run.path), id: `run-${run.path}` },
          inGroup ? `seed ${run.seed ?? "–"}` : titleOf(run),
        ),
      ),
      ...cells(run),
    )

  const groupRow = (group, color, open) =>
    el(
      "tr.group",
      box(group.key, group.label, color),
      el(
        "td.name",
        el(
          "button.open",
          { id: `open-${group.key}`, "aria-expanded": String(open), onclick: () => expand(group.key) },
          el("span", { "aria-hidden": "true" }, open ? "▾ " : "▸ "),
          el("b", titleOf(group) || group.label),
        ),
        el("span.quiet", ` ${counted(group.runs.length, "run")}${group.configsDiffer ? ", configs differ" : ""}`),
      ),
      ...cells(group),
    )

  const show = (next) => {
    last = next
    const { items, sort, colors, expanded, columns } = next
    const settings = columns.filter(isSetting)
    const focused = document.activeElement?.id
    head.replaceChildren(
      el("th.box", { scope: "col" }, el("span.hidden", "drawn")),
      ...["name", ...columns].map((column) => heading(sort, column, columnOf(column).text, columnOf(column).kind)),
    )
    const rows = items.flatMap((item) => {
      if (item.runs === undefined) return [{ key: item.path, item, make: runRow, extra: false }]
      const open = expanded.has(item.key)
      const members = open ? item.runs.map((run) => ({ key: run.path, item: run, make: runRow, extra: true })) : []
      return [{ key: item.key, item, make: groupRow, extra: open }, ...members]
    })
    const shown = all ? rows : rows.slice(0, mostRows)
    fill(
      shown.map(({ key, item, make, extra }) => {
        const own = item.runs === undefined ? item : { ...item, runs: item.runs.length }
        const values = settings.map((column) => columnOf(column).of(item))
        const content = [own, colors.get(key), extra, columns, values]
        return { key, content, make: () => make(item, colors.get(key), extra) }
      }),
    )
    if (shown.length === 0) body.append(el("tr", el("td.quiet", { colspan: String(columns.length + 2) }, next.nothing)))
    more.hidden = shown.length === rows.length
    more.textContent = `Show all ${number(rows.length)} rows`
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true })
  }

  return { element, show }
}
