/**
 * Fits a table of runs to the terminal's width, for `effect runs`. It takes these steps until the table fits: cut paths
 * to their ends; move columns with the same value in all rows below the table; drop the columns of details; drop the
 * path; cut long names.
 */
import { type Cell, cell, type Paint, table } from "./table.ts"

export interface TableColumn {
  readonly heading: string
  readonly cells: ReadonlyArray<Cell | undefined>
  /** How a column may shrink: a figure stays, a detail can be dropped, a name or a path can be cut. */
  readonly role: "figure" | "detail" | "name" | "path"
}

interface FittedOptions {
  /** The width of the terminal in characters; undefined if the output is not a terminal. */
  readonly width?: number | undefined
  readonly paint?: Paint | undefined
}

/** The number of characters below which a name is never cut. */
const leastName = 6
/** The number of characters below which a path is never cut, because a shorter one would not identify a run. */
const leastPath = 12

/** Formats a table of at most `width` characters by the steps above. Notes below it name the columns that it lacks. */
export const fitted = (columns: ReadonlyArray<TableColumn>, { width = Infinity, paint }: FittedOptions): string => {
  const rows = columns[0]?.cells.length ?? 0
  const isSame = ({ role, cells }: TableColumn): boolean =>
    (role === "name" || role === "detail") && rows > 1 && cells.every((one) => one === cells[0])
  const fits = (some: ReadonlyArray<TableColumn>): boolean => widthOf(some) <= width

  const formatted = (shown: ReadonlyArray<TableColumn>): string => {
    const lines = shown[0]?.cells.map((_, row) => shown.map(({ cells }) => cells[row])) ?? []
    const headings = shown.map(({ heading }) => heading)
    const has = ({ heading }: TableColumn): boolean => headings.includes(heading)
    const dropped = columns.filter((column) => !has(column))
    const same = dropped.filter(isSame).map(({ heading, cells }) => `${heading} ${cell(cells[0])}`)
    const others = dropped.filter((column) => !isSame(column)).map(({ heading }) => heading)
    const notes = [
      ...(same.length === 0 ? [] : [`the same in all: ${same.join(", ")}`]),
      ...(others.length === 0 ? [] : [`not shown: ${others.join(", ")}; a wider terminal or --json has all`]),
    ]
    return table(headings, lines, paint) + notes.flatMap((note) => wrapped(note, width)).join("")
  }

  if (fits(columns)) return formatted(columns)
  const withoutSameNames = columns.filter((column) => column.role === "detail" || !isSame(column))
  const differing = withoutSameNames.filter((column) => !isSame(column))
  const withoutDetails = differing.filter(({ role }) => role !== "detail")
  for (const some of [columns, withoutSameNames, differing, withoutDetails]) {
    const room = width - widthOf(some.filter((column) => !isPath(column))) - gap
    const shown = some.map((column) => (isPath(column) ? shortPaths(column, room) : column))
    if (room >= leastPath && (some.some(isPath) ? endsOf(some) <= room : fits(some))) return formatted(shown)
  }
  const pathless = [withoutSameNames, differing, withoutDetails].map((some) => some.filter((column) => !isPath(column)))
  let shown = pathless.find(fits) ?? pathless[2]
  while (!fits(shown)) {
    const names = shown.filter(({ role }) => role === "name")
    const longest = names.toSorted((a, b) => cellsWidth(b) - cellsWidth(a))[0]
    if (longest !== undefined && cellsWidth(longest) > Math.max(leastName, longest.heading.length)) {
      const shorter = shortened(longest, cellsWidth(longest) - 1)
      shown = shown.map((column) => (column === longest ? shorter : column))
    } else if (longest === undefined) break
    else shown = shown.filter((column) => column !== names.at(-1))
  }
  return formatted(shown)
}

/** The number of spaces between two columns. */
const gap = 2

const cellsWidth = ({ cells }: TableColumn): number => Math.max(0, ...cells.map((one) => cell(one).length))

const widthOf = (columns: ReadonlyArray<TableColumn>): number =>
  columns.reduce((sum, column) => sum + Math.max(column.heading.length, cellsWidth(column)) + gap, -gap)

/** Returns the length of the longest path after each path was cut to the shortest end that no other path has. */
const endsOf = (columns: ReadonlyArray<TableColumn>): number => {
  const paths = columns.find(isPath)?.cells.map(cell) ?? []
  const least = leastFolders(paths)
  return Math.max(0, ...paths.map((path, row) => endOf(path, least[row]).length))
}

/** Returns for each path the number of folders in its shortest unique end: at least `…/CONFIG/SEED`. */
const leastFolders = (paths: ReadonlyArray<string>): ReadonlyArray<number> => {
  const most = Math.max(2, ...paths.map((path) => path.split("/").length))
  const folders = paths.map(() => most)
  for (let count = most - 1; count >= 2; count--) {
    const ends = paths.map((path) => path.split("/").slice(-count).join("/"))
    const times = new Map<string, number>()
    for (const end of ends) times.set(end, (times.get(end) ?? 0) + 1)
    ends.forEach((end, row) => {
      if (times.get(end) === 1) folders[row] = count
    })
  }
  return folders
}

const isPath = ({ role }: TableColumn): boolean => role === "path"

const endOf = (path: string, folders: number): string => {
  const parts = path.split("/")
  return parts.length <= folders ? path : `…/${parts.slice(-folders).join("/")}`
}

/** Shortens paths from the left, so that they fit into `room` characters. */
const shortPaths = (column: TableColumn, room: number): TableColumn => ({
  ...column,
  cells: column.cells.map((one) => {
    const path = cell(one)
    const folders = path.split("/").length
    const ends = Array.from({ length: folders }, (_, index) => endOf(path, folders - index))
    return ends.find(({ length }) => length <= room) ?? `…${path.slice(1 - room)}`
  }),
})

const shortened = (column: TableColumn, most: number): TableColumn => ({
  ...column,
  cells: column.cells.map((one) => (typeof one === "string" && one.length > most ? `${one.slice(0, most - 1)}…` : one)),
})

const wrapped = (text: string, width: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of text.split(" ")) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines.map((line) => `${line}\n`)
}
