/**
 * Checks programs before a backend compiles them, and computes the shapes of their feeds (the arrays that the caller
 * fills for the inputs) and results (the arrays that the caller reads for the outputs).
 */
import { Record } from "effect"
import { programError } from "./GraphError.ts"
import { sameShape, shapeText } from "./ops/core.ts"
import { indicesFeed, type ProgramSpec } from "./Program.ts"
import { type Tensor, topologicalOrder } from "./Tensor.ts"

/** Lists all tensors that a program computes: its outputs, the next values of its states, and `continueWhile`. */
export const rootsOf = (spec: ProgramSpec): ReadonlyArray<Tensor> => [
  ...Object.values(spec.outputs),
  ...Object.values(spec.state).flatMap(({ next }) => (next === undefined ? [] : [next])),
  ...(spec.minibatches?.continueWhile === undefined ? [] : [spec.minibatches.continueWhile]),
]

/** Throws a `GraphError` if a program's names, shapes and graph do not fit together. Every backend calls it first. */
export const validate = (spec: ProgramSpec): void => {
  const refuse = (message: string, ...tensors: ReadonlyArray<Tensor>): never => {
    throw programError(spec.name, message, { shapes: tensors.map(({ shape }) => shape) })
  }
  for (const [name, tensor] of Object.entries(spec.inputs)) {
    if (tensor.op.kind !== "input" || tensor.op.name !== name)
      refuse(`input "${name}": expected an input op of this name`, tensor)
    if (name === indicesFeed && spec.minibatches !== undefined)
      refuse(`input "${indicesFeed}": the name is reserved for the index matrix`, tensor)
  }
  for (const [name, { tensor, next, frozen, stacked = false }] of Object.entries(spec.state)) {
    if (frozen === true && next !== undefined) refuse(`state "${name}": a frozen state has no next value`, tensor)
    if (tensor.op.kind !== "state" || tensor.op.name !== name)
      refuse(`state "${name}": expected a state op of this name`, tensor)
    if (
      stacked &&
      (next === undefined || spec.minibatches === undefined || spec.minibatches.continueWhile !== undefined)
    )
      refuse(`state "${name}": a stacked state needs a next value, and minibatches without continueWhile`, tensor)
    if (next !== undefined && tensor.dtype !== "f32")
      refuse(`state "${name}": a state of ${tensor.dtype} has no next value`, tensor)
    const nextShape = stacked ? [spec.minibatches?.count ?? 0, ...(next?.shape ?? [])] : next?.shape
    if (next !== undefined && (!sameShape(nextShape ?? [], tensor.shape) || next.dtype !== "f32")) {
      refuse(`state "${name}": its next value has another shape or dtype`, tensor, next)
    }
  }
  for (const tensor of topologicalOrder(rootsOf(spec))) {
    const { op } = tensor
    if (op.kind === "input" && spec.inputs[op.name] !== tensor)
      refuse(`input "${op.name}" is used but not declared`, tensor)
    if (op.kind === "state" && spec.state[op.name]?.tensor !== tensor)
      refuse(`state "${op.name}" is used but not declared`, tensor)
    if (op.kind === "state" && spec.state[op.name]?.stacked === true)
      refuse(`state "${op.name}" is stacked, so only other programs can read it`, tensor)
  }
  const { minibatches } = spec
  if (minibatches === undefined) return
  const { batch, rows, count, gathered, continueWhile } = minibatches
  if (![batch, rows, count].every((size) => Number.isInteger(size) && size > 0))
    refuse("minibatches need whole, positive sizes")
  for (const name of gathered) {
    const tensor = spec.inputs[name]
    if (tensor === undefined) refuse(`gathered input "${name}" is not declared`)
    if (tensor.shape[0] !== batch) refuse(`gathered input "${name}": expected ${batch} rows`, tensor)
  }
  if (continueWhile !== undefined && (continueWhile.shape.length !== 0 || continueWhile.dtype !== "bool")) {
    refuse("continueWhile must be a bool scalar", continueWhile)
  }
}

/**
 * Throws a `GraphError` if one of the programs is not valid, or if they cannot share arrays: states need one shape in all
 * programs that have them, and the feeds named in `sharedFeeds` need rows of one shape. A name in `sharedFeeds` that no
 * program has is an error.
 */
export const validateAll = (
  specs: Readonly<Record<string, ProgramSpec>>,
  sharedFeeds: ReadonlyArray<string> = [],
): void => {
  const programs = Object.entries(specs)
  for (const [, spec] of programs) validate(spec)
  const feeds = programs.map(([name, spec]) => [name, feedShapes(spec)] as const)
  expectOneShape(
    "state",
    programs.map(([name, { state }]) => [name, Record.map(state, ({ tensor }) => tensor)] as const),
  )
  for (const shared of sharedFeeds) {
    const having = feeds.filter(([, own]) => own[shared] !== undefined)
    if (having.length === 0) {
      const names = programs.map(([name]) => `"${name}"`).join(", ")
      throw programError(`sharedFeeds "${shared}"`, `expected an input of one of the programs ${names}`)
    }
    expectOneShape(
      "shared feed",
      having.map(([name, own]) => [name, { [shared]: own[shared] }] as const),
      ({ shape }, other) => sameShape(shape.slice(1), other.shape.slice(1)) && shape.length === other.shape.length,
    )
  }
}

/** Throws a `GraphError` that names two programs if the shapes or dtypes that they need for an array differ. */
const expectOneShape = (
  kind: string,
  programs: ReadonlyArray<readonly [string, TensorOutlines]>,
  fits: (one: Outline, other: Outline) => boolean = ({ shape }, other) => sameShape(shape, other.shape),
): void => {
  const first = new Map<string, { readonly program: string; readonly outline: Outline }>()
  for (const [program, outlines] of programs) {
    for (const [name, outline] of Object.entries(outlines)) {
      const earlier = first.get(name)
      if (earlier === undefined) first.set(name, { program, outline })
      else if (!fits(earlier.outline, outline) || earlier.outline.dtype !== outline.dtype) {
        const expected = `expected ${outlineText(earlier.outline)} as in "${earlier.program}"`
        throw programError(program, `${kind} "${name}": ${expected}, found ${outlineText(outline)}`, {
          shapes: [earlier.outline.shape, outline.shape],
        })
      }
    }
  }
}

const outlineText = ({ dtype, shape }: Outline): string => `${dtype} ${shapeText(shape)}`

/** The shape and dtype of an array. */
export type Outline = Pick<Tensor, "shape" | "dtype">
type TensorOutlines = Readonly<Record<string, Outline>>

/** Returns the shapes of a program's feeds. The feed of a gathered input contains all rows, not only one minibatch. */
export const feedShapes = ({ inputs, minibatches }: ProgramSpec): TensorOutlines => {
  const feeds = Record.map(inputs, ({ shape, dtype }, name) => {
    const isGathered = minibatches?.gathered.includes(name) === true
    return { shape: isGathered ? [minibatches.rows, ...shape.slice(1)] : shape, dtype }
  })
  if (minibatches === undefined) return feeds
  return { ...feeds, [indicesFeed]: { shape: [minibatches.count, minibatches.batch], dtype: "i32" } }
}

/** Returns the shapes of a program's results. With minibatches, the first axis of each result is the iteration. */
export const resultShapes = ({ outputs, minibatches }: ProgramSpec): TensorOutlines =>
  Record.map(outputs, ({ shape, dtype }) => ({
    shape: minibatches === undefined ? shape : [minibatches.count, ...shape],
    dtype,
  }))
