/** Shows the progress of a sweep's runs, as a table on a terminal and as lines elsewhere. sweep.ts calls it. */
import { Effect } from "effect"
import { harmless } from "../../base/text/text.ts"
import { table as aligned } from "../../run/find/table.ts"

/** The progress of one run of a sweep. */
export type RowState =
  | { readonly _tag: "Waiting" }
  | {
      readonly _tag: "Running"
      readonly step?: number
      readonly totalSteps?: number
      readonly stepsPerSecond?: number
    }
  | { readonly _tag: "Done"; readonly score: string; readonly about: string }
  | { readonly _tag: "Failed"; readonly problem: string; readonly directory: string }

interface BoardOptions {
  readonly labels: ReadonlyArray<string>
  readonly write: (text: string) => void
  /**
   * Tells whether the output is a terminal. A terminal gets a table that is redrawn; other outputs get a line when a
   * run ends.
   */
  readonly isTerminal: boolean
  readonly columns: number
  readonly rows: number
  readonly now?: () => number
  /** Colours the word for a run's state, such as `done`. */
  readonly paint?: (state: string) => string
}

/** The shortest time between two renderings of the progress. */
const renderMillis = 100

/** Formats the line that tells why a run of a sweep failed, and where the run is. */
export const failureLine = (
  label: string,
  { problem, directory }: Omit<Extract<RowState, { _tag: "Failed" }>, "_tag">,
) => harmless(`${label}: failed: ${problem}  ${directory}\n`)

const unpainted = (text: string): string => text

/** Makes a board: `update` shows the new state of the run with this index, and `close` shows all states a last time. */
export const makeBoard = (options: BoardOptions) => {
  const { labels, write, isTerminal, columns, rows, now = Date.now, paint = unpainted } = options
  const states: Array<RowState> = labels.map(() => ({ _tag: "Waiting" }))
  let renderedAt = -Infinity
  let renderedLines = 0
  const render = (height: number): void => {
    const progress = labels.map((label, index) => ({ label, state: states[index] }))
    const lines = table(progress, columns, height, paint)
    // Move the cursor up to the first line of the last table, and clear from there.
    const back = renderedLines === 0 ? "" : `\u001b[${renderedLines}A`
    write(`${back}\r\u001b[J${lines.join("\n")}\n`)
    renderedLines = lines.length
    renderedAt = now()
  }
  return {
    update: (index: number, state: RowState): void => {
      states[index] = state
      if (isTerminal) {
        if (state._tag !== "Running" || now() - renderedAt >= renderMillis) render(rows - 1)
      } else if (state._tag === "Done") write(harmless(`${labels[index]}: ${state.score} ${state.about}\n`))
      else if (state._tag === "Failed") write(failureLine(labels[index], state))
    },
    /** Renders all rows a last time, and leaves them on the terminal. */
    close: Effect.sync(() => void (isTerminal && render(Infinity))),
  }
}

/**
 * The order of the states: if the terminal has no room for all runs, the runs whose states have the lowest numbers are shown.
 */
const urgency: Readonly<Record<RowState["_tag"], number>> = { Running: 0, Failed: 1, Done: 2, Waiting: 3 }

/** Formats one line per run, as many as fit, and a last line with the number of runs in each state. */
export const table = (
  rows: ReadonlyArray<{ readonly label: string; readonly state: RowState }>,
  width: number,
  height: number,
  paint: (state: string) => string = unpainted,
): ReadonlyArray<string> => {
  const shown = rows
    .map((row, index) => ({ ...row, index }))
    .sort((a, b) => urgency[a.state._tag] - urgency[b.state._tag] || a.index - b.index)
    .slice(0, Math.max(0, height - 1))
    .sort((a, b) => a.index - b.index)
  const cells = shown.map(({ label, state }) => [harmless(label), harmless(textOf(state))])
  const count = (tag: RowState["_tag"]): number => rows.filter(({ state }) => state._tag === tag).length
  const counts = (["Running", "Waiting", "Done", "Failed"] as const)
    .filter((tag) => count(tag) > 0)
    .map((tag) => `${count(tag)} ${tag.toLowerCase()}`)
  const lines = `${cells.length === 0 ? "" : aligned([], cells)}${counts.join(", ")}`
    .split("\n")
    .map((line) => cut(line, width))
  // Colour codes have no width, so they are added after the lines are cut.
  return lines.map((line, index) => {
    const [label = "", text = ""] = cells[index] ?? []
    const [state = ""] = /^\w*/.exec(text) ?? []
    const at = state === "" ? -1 : line.indexOf(`  ${state}`, label.length) + 2
    return at < 2 ? line : `${line.slice(0, at)}${paint(state)}${line.slice(at + state.length)}`
  })
}

const cut = (line: string, width: number): string =>
  line.length < width ? line : `${line.slice(0, Math.max(0, width - 2))}…`

const textOf = (state: RowState): string => {
  switch (state._tag) {
    case "Waiting":
      return "waiting"
    case "Running": {
      const { step, totalSteps, stepsPerSecond } = state
      if (step === undefined) return "starting"
      return `running  ${step} of ${totalSteps} steps  ${Math.round(stepsPerSecond ?? 0)}/s`
    }
    case "Done":
      return `done  ${state.score} ${state.about}`
    case "Failed":
      return `failed  ${state.problem}`
  }
}
