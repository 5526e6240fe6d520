/**
 * Makes the table of runs, with groups that can be opened, columns that sort it, and boxes that choose runs for the charts.
 */
import { runAddress } from "../address.js"
import { el, rowsIn } from "../parts/dom.js"
import { counted, number } from "../parts/format.js"
import { seededTitle, titleOf } from "../parts/runTexts.js"
import { columnOf, isSetting } from "./columns.js"

/** The number of rows that the table shows until the user presses a button that shows the others. */
const mostRows = 200

/** Makes the table. It calls `sortBy`, `select` or `expand` when the user clicks a heading, a box or a group. */
export const makeTable = (actions) => {
  const body = el("tbody")
  const table = {
    actions,
    body,
    fill: rowsIn(body),
    head: el("tr"),
    more: el("button.button.more", { hidden: true, onclick: () => showAll(table) }),
    /** Whether the user wants to see more rows than `mostRows`. */
    all: false,
    /** The rows and columns that were shown last; undefined before the first time. */
    last: undefined,
  }
  const inside = el("table.runs", { "aria-label": "Runs" }, el("thead", table.head), body)
  return { element: el("div.table", inside, table.more), show: (next) => show(table, next) }
}

const showAll = (table) => {
  table.all = true
  show(table, table.last)
}

/** Shows items in their order. An item is a run or a group of runs. */
const show = (table, next) => {
  const { head, body, more } = table
  table.last = next
  const { items, sort, columns, expanded } = next
  const focused = document.activeElement?.id
  head.replaceChildren(
    el("th.box", { scope: "col" }, el("span.hidden", "drawn")),
    ...["name", ...columns].map((column) => headingOf(table.actions, sort, column)),
  )
  const rows = items.flatMap((item) => rowsOf(item, expanded))
  const shown = table.all ? rows : rows.slice(0, mostRows)
  fillRows(table, shown)
  if (shown.length === 0) body.append(el("tr", el("td.quiet", { colspan: String(columns.length + 2) }, next.nothing)))
  more.hidden = shown.length === rows.length
  more.textContent = `Show all ${number(rows.length)} rows`
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true })
}

/** Returns the row of a run. For a group, returns its own row and, if it is open, the rows of its runs. */
const rowsOf = (item, expanded) => {
  if (item.runs === undefined) return [{ key: item.path, item, make: runRow, extra: false }]
  const open = expanded.has(item.key)
  const members = open ? item.runs.map((run) => ({ key: run.path, item: run, make: runRow, extra: true })) : []
  return [{ key: item.key, item, make: groupRow, extra: open }, ...members]
}

const fillRows = ({ actions, fill, last: { columns, colors } }, rows) => {
  const settings = columns.filter(isSetting)
  fill(
    rows.map(({ key, item, make, extra }) => {
      const own = item.runs === undefined ? item : { ...item, runs: item.runs.length }
      const values = settings.map((column) => columnOf(column).of(item))
      const content = [own, colors.get(key), extra, columns, values]
      return { key, content, make: () => make({ actions, columns, color: colors.get(key) }, item, extra) }
    }),
  )
}

const headingOf = ({ sortBy }, sort, column) => {
  const { text, kind } = columnOf(column)
  const order = sort.descending ? { arrow: " ▾", direction: "descending" } : { arrow: " ▴", direction: "ascending" }
  const { arrow, direction } = sort.by === column ? order : { arrow: "", direction: undefined }
  const button = el("button", { id: `sort-${column}`, onclick: () => sortBy(column) }, text + arrow)
  return el("th", { scope: "col", class: kind, "aria-sort": direction }, button)
}

const boxOf = ({ actions, color }, key, label) => {
  const input = el("input", {
    type: "checkbox",
    id: `box-${key}`,
    checked: color !== undefined,
    "aria-label": `Draw ${label}`,
    style: color && { accentColor: color },
    onchange: () => actions.select(key, input.checked),
  })
  return el("td.box", { style: color && { boxShadow: `inset 4px 0 ${color}` } }, input)
}

const cellsOf = ({ columns }, item) =>
  columns.map((key) => {
    const { kind, cell } = columnOf(key)
    return el("td", { class: kind }, cell(item))
  })

const runRow = (look, run, inGroup) =>
  el(
    "tr",
    { class: inGroup ? "member" : "" },
    boxOf(look, run.path, seededTitle(run)),
    el(
      "td.name",
      el("a", { href: runAddress(run.path), id: `run-${run.path}` }, inGroup ? `seed ${run.seed ?? "–"}` : titleOf(run)), // prettier-ignore
    ),
    ...cellsOf(look, run),
  )

const groupRow = (look, group, open) =>
  el(
    "tr.group",
    boxOf(look, group.key, group.label),
    el(
      "td.name",
      el(
        "button.open",
        { id: `open-${group.key}`, "aria-expanded": String(open), onclick: () => look.actions.expand(group.key) },
        el("span", { "aria-hidden": "true" }, open ? "▾ " : "▸ "),
        el("b", titleOf(group) || group.label),
      ),
      el("span.quiet", ` ${counted(group.runs.length, "run")}${group.configsDiffer ? ", configs differ" : ""}`),
    ),
    ...cellsOf(look, group),
  )
