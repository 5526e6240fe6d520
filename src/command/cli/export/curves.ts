/** Draws learning curves, for `effect export A B --to svg`: one curve for each argument, or for each group of seeds in it. */
import { dirname, resolve } from "node:path"
import { Effect, Option } from "effect"
import { utf8 } from "../../../base/text/utf8.ts"
import { curvesCsv, curvesFigure, type NamedCurve } from "../../../rl/export/curveFiles.ts"
import { svgOf } from "../../../rl/export/drawing.ts"
import { pdfOf } from "../../../rl/export/pdf.ts"
import { encodePng } from "../../../base/formats/picture/png.ts"
import { drawSvg } from "../../../base/formats/picture/svg.ts"
import { aggregateCurves } from "../../../base/statistics/statistics.ts"
import { usageError } from "../output/output.ts"
import { nameFor } from "./names.ts"
import { groupsNamed, labelsOf, openRun, type RunGroup } from "../runGroups.ts"

export const curveFormats = ["csv", "svg", "png", "pdf"] as const
export type CurveFormat = (typeof curveFormats)[number]

/** The number of pixels in a PNG for each pixel of the SVG, so that letters are sharp on screens of high resolution. */
const pngScale = 2

/**
 * Draws the learning curves of the runs that the user named: a curve for each argument, or several curves if the argument's
 * runs differ in more than their seeds. Returns the bytes of the file, and its name without an ending.
 */
export const curvesFile = Effect.fnUntraced(function* (input: {
  readonly runs: ReadonlyArray<string>
  readonly resultsDir: string
  readonly to: CurveFormat
  readonly label: ReadonlyArray<string>
  readonly title: Option.Option<string>
}) {
  const named = yield* Effect.forEach(input.runs, (typed) => groupsNamed(typed, input.resultsDir))
  const groups = merged(named.flat())
  const names = input.label.length > 0 ? input.label : labelsOf(groups)
  if (names.length !== groups.length) {
    const found = groups.length === 1 ? "one curve" : `${groups.length} curves: ${labelsOf(groups).join(", ")}`
    return yield* usageError(`--label: expected a name for each curve, found ${names.length} for ${found}`)
  }
  const curves = yield* Effect.forEach(groups, (group, index) => curveOf(group, names[index]))
  const name = nameOf(groups)
  const contents = yield* encoded(
    Option.getOrElse(input.title, () => name),
    curves,
    input.to,
  )
  return { contents, name: name.replace(/[^\w.-]+/g, "-") }
})

/**
 * Merges runs that were named one by one into one group if they are seeds in one folder, which a shell's `*` lists one by
 * one.
 */
const merged = (groups: ReadonlyArray<RunGroup>): ReadonlyArray<RunGroup> =>
  [
    ...Map.groupBy(groups, ({ key, runs: [{ path, seed }, ...others] }, index) =>
      seed !== undefined && others.length === 0 ? `${dirname(resolve(path))} ${key}` : index,
    ).values(),
  ].map((some) => ({ key: some[0].key, runs: some.flatMap(({ runs }) => runs) }))

const curveOf = Effect.fnUntraced(function* ({ runs }: RunGroup, name: string) {
  const curves = yield* Effect.forEach(runs, (run) =>
    Effect.map(openRun(run).curve, (points) => points.map(({ step, mean: value }) => ({ step, value }))),
  )
  const empty = runs.find((_, index) => curves[index].length === 0)
  if (empty !== undefined) return yield* usageError(`${empty.path}: the run has no validation, so it has no curve`)
  const curve = aggregateCurves(curves)
  if (curve.length > 0) return { name, curve }
  const ranges = curves.map((points) => `${points[0].step} to ${points[points.length - 1].step}`)
  return yield* usageError(
    `${dirname(runs[0].path)}: its runs have validations over different steps (${[...new Set(ranges)].join(", ")}), so they have no common curve`,
  )
})

/**
 * Returns a name for the file: that of the only run, or of the folder of its seeds. If there are several groups, the name
 * consists of the facts that they have in common.
 */
const nameOf = (groups: ReadonlyArray<RunGroup>): string => {
  const [{ runs }, ...others] = groups
  if (others.length === 0) return nameFor(runs.length === 1 ? runs[0].path : dirname(resolve(runs[0].path)))
  const facts = groups.map(({ runs: [{ name, population }] }) => new Set([...Object.values(population), name ?? ""]))
  const common = [...facts[0]].filter((value) => value !== "" && facts.every((some) => some.has(value)))
  return common.length > 0 ? common.join(" ") : "curves"
}

const encoded = Effect.fnUntraced(function* (title: string, curves: ReadonlyArray<NamedCurve>, to: CurveFormat) {
  if (to === "csv") return utf8.encode(curvesCsv(curves))
  const figure = curvesFigure(title, curves)
  if (to === "pdf") return pdfOf(figure)
  return to === "svg" ? utf8.encode(svgOf(figure)) : yield* encodePng(yield* drawSvg(svgOf(figure, pngScale)))
})
