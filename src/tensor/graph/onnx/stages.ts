/**
 * Divides a program with minibatches into the tensors computed before, in and after the loop, for `emit.ts`. Each node
 * in the loop's body has a cost in each iteration, so only tensors that depend on the previous iteration's state stay:
 *
 * - a tensor that is the same in all iterations is computed once, before the loop;
 * - a tensor that depends only on an iteration's rows or number (normalised advantages, one-hot actions, Adam's bias
 * corrections) is computed before the loop, for all iterations at once;
 * - a tensor that only results need (metrics) is computed after the loop, for all iterations at once.
 */
import { Record } from "effect"
import { add, constant, gather, input } from "../ops.ts"
import { indicesFeed, type Minibatches, type ProgramSpec, stackedStates } from "../Program.ts"
import { sizeOf, type Tensor, topologicalOrder } from "../Tensor.ts"
import { rootsOf } from "../validate.ts"
import { counted, isLiftable, lift, repeated } from "./lift.ts"

export const stagesOf = (spec: ProgramSpec, minibatches: Minibatches) => {
  const { count, continueWhile } = minibatches
  const totalSize = (tensor: Tensor): number => count * sizeOf(tensor.shape)
  // The number of iterations is fixed unless a condition can end the loop early.
  const countKnown = continueWhile === undefined

  const { feeds, fixed, series, gatheredInside } = divideInputs(spec, minibatches)
  /** States that each iteration computes anew and passes on to the next iteration. */
  const carried: Array<Carried> = []
  /** States to which each iteration adds a fixed integer, with their final values, which need no loop. */
  const counters: Array<readonly [string, Tensor]> = []
  for (const [name, { tensor, next, stacked }] of Object.entries(spec.state)) {
    if (stacked === true) continue
    const step = next === undefined ? undefined : stepOf(tensor, next)
    if (next === undefined) fixed.add(tensor)
    else if (step !== undefined && countKnown && totalSize(tensor) <= mostMoved) {
      series.set(tensor, add(tensor, counted(step, count, tensor.shape)))
      counters.push([name, add(tensor, constant(step * count))])
    } else carried.push({ name, tensor, next })
  }

  const order = topologicalOrder(rootsOf(spec))
  const inside: Array<Tensor> = []
  for (const tensor of order) {
    const { inputs, op } = tensor
    if (fixed.has(tensor) || series.has(tensor) || op.kind === "input" || op.kind === "state") continue
    const isBeforeLoop = inputs.every((source) => fixed.has(source) || series.has(source))
    const isSmall = (source: Tensor): boolean => fixed.has(source) || totalSize(source) <= mostMoved
    if (inputs.every((source) => fixed.has(source))) fixed.add(tensor)
    else if (isBeforeLoop && isLiftable(tensor) && isSmall(tensor) && inputs.every(isSmall)) {
      const lifted = lift(tensor, count, (source) => series.get(source))
      series.set(tensor, lifted)
    } else inside.push(tensor)
  }

  // Counters are computed outside of the loop, so their next values are not among its roots.
  const bodyOutputs = [...carried.map(({ next }) => next), ...(continueWhile === undefined ? [] : [continueWhile])]
  const insideSet = new Set([...inside, ...carried.map(({ tensor }) => tensor), ...gatheredInside.map(([, x]) => x)])
  const body = bodyOf(
    spec,
    bodyOutputs,
    insideSet,
    countKnown ? (tensor) => totalSize(tensor) <= mostMoved : () => false,
  )

  const { collected, inAllIterations } = afterLoopOf({
    count,
    fixed,
    series,
    isInside: (tensor) => insideSet.has(tensor),
    isLiftedAfter: (tensor) => !body.has(tensor) && inside.includes(tensor),
  })
  /** The outputs of the program: for each, a tensor [count, ...shape] that is computed after the loop. */
  const results = Record.map(spec.outputs, inAllIterations)
  /** The states that collect a tensor of all iterations, with their values. */
  const stacked = stackedStates(spec).map(([name, next]) => [name, inAllIterations(next)] as const)
  return {
    feeds,
    fixed: order.filter((tensor) => fixed.has(tensor)),
    series,
    gatheredInside,
    body: inside.filter((tensor) => body.has(tensor)),
    carried,
    bodyOutputs,
    counters,
    collected,
    results,
    stacked,
  }
}

/** Divides the inputs of a program into those that are the same in each iteration, and those whose rows it gathers. */
const divideInputs = ({ inputs }: ProgramSpec, { count, batch, rows, gathered }: Minibatches) => {
  const indices = input(indicesFeed, [count, batch], "i32")
  /** The feeds: the arrays that the caller fills, from which the tensors before the loop are computed. */
  const feeds = new Map<string, Tensor>([[indicesFeed, indices]])
  /** The tensors that are the same in each iteration. They are computed before the loop, and its body reads them. */
  const fixed = new Set<Tensor>()
  /** Tensors that differ by iteration but are computed before the loop, with all their values, [count, ...shape]. */
  const series = new Map<Tensor, Tensor>()
  /** Inputs whose rows are gathered in the loop: for all iterations at once they would take too much memory. */
  const gatheredInside: Array<readonly [string, Tensor]> = []
  for (const [name, tensor] of Object.entries(inputs)) {
    if (!gathered.includes(name)) {
      feeds.set(name, tensor)
      fixed.add(tensor)
      continue
    }
    const whole = input(name, [rows, ...tensor.shape.slice(1)], tensor.dtype)
    feeds.set(name, whole)
    const isSmall = count * sizeOf(tensor.shape) <= mostLaidOut
    if (isSmall && tensor.shape.length < 6) series.set(tensor, gather(whole, indices))
    else gatheredInside.push([name, tensor])
  }
  return { feeds, fixed, series, gatheredInside }
}

/** The tensors whose values in all iterations are known before the loop, or can be collected by its end. */
interface Iterated {
  readonly count: number
  readonly fixed: ReadonlySet<Tensor>
  readonly series: ReadonlyMap<Tensor, Tensor>
  /** Whether a tensor is computed in the loop or changes in it. */
  readonly isInside: (tensor: Tensor) => boolean
  /** Whether only results need a tensor, so that it is computed after the loop instead of in it. */
  readonly isLiftedAfter: (tensor: Tensor) => boolean
}

/**
 * Returns the function that returns the values of a tensor in all iterations, and the map of tensors that this function
 * collects.
 */
const afterLoopOf = ({ count, fixed, series, isInside, isLiftedAfter }: Iterated) => {
  /** For each tensor of the body that results need, the tensor after the loop with its values in all iterations. */
  const collected = new Map<Tensor, Tensor>()
  const later = new Map<Tensor, Tensor>()
  /** Returns the values of a tensor in all iterations, for use after the loop; undefined if all are the same. */
  const afterLoop = (tensor: Tensor): Tensor | undefined => {
    if (fixed.has(tensor)) return undefined
    const existing = series.get(tensor) ?? later.get(tensor)
    if (existing !== undefined) return existing
    if (!isInside(tensor)) return undefined
    const isCollected = !isLiftedAfter(tensor)
    const values = isCollected
      ? input(`collected ${collected.size}`, [count, ...tensor.shape], tensor.dtype)
      : lift(tensor, count, afterLoop)
    if (isCollected) collected.set(tensor, values)
    later.set(tensor, values)
    return values
  }
  return { collected, inAllIterations: (tensor: Tensor): Tensor => afterLoop(tensor) ?? repeated(tensor, count) }
}

export type Stages = ReturnType<typeof stagesOf>

interface Carried {
  readonly name: string
  readonly tensor: Tensor
  readonly next: Tensor
}

/** The largest number of elements, over all iterations, of an input whose rows are gathered before the loop. */
const mostLaidOut = 1 << 22
/**
 * An op leaves the loop only if its result for all iterations has at most this many elements: a larger array costs more
 * time than a node.
 */
const mostMoved = 1 << 17

/** Returns the integer that each iteration adds to a state; undefined if the state changes in any other way. */
const stepOf = (state: Tensor, { op, inputs }: Tensor): number | undefined => {
  if (op.kind !== "binary" || op.fn !== "add" || !inputs.includes(state)) return undefined
  const other = inputs[0] === state ? inputs[1] : inputs[0]
  if (other.op.kind !== "constant" || other.op.data.length !== 1 || other.shape.length > state.shape.length)
    return undefined
  const [step] = other.op.data
  return Number.isInteger(step) ? step : undefined
}

/**
 * Lists the tensors that stay in the loop: those that `bodyOutputs` (next states and condition) depend on, those that
 * cannot be lifted, those too large to move (not `movable`), and all tensors `inside` the loop that these read.
 */
const bodyOf = (
  spec: ProgramSpec,
  bodyOutputs: ReadonlyArray<Tensor>,
  inside: ReadonlySet<Tensor>,
  movable: (tensor: Tensor) => boolean,
): ReadonlySet<Tensor> => {
  const body = new Set<Tensor>()
  const keep = (roots: ReadonlyArray<Tensor>): void => {
    for (const tensor of topologicalOrder(roots)) if (inside.has(tensor)) body.add(tensor)
  }
  keep(bodyOutputs)
  const results = [...Object.values(spec.outputs), ...stackedStates(spec).map(([, next]) => next)]
  const forResults = topologicalOrder(results).filter((tensor) => inside.has(tensor))
  const canLeave = (tensor: Tensor): boolean =>
    isLiftable(tensor) && movable(tensor) && tensor.inputs.every((source) => !inside.has(source) || movable(source))
  for (;;) {
    const stuck = forResults.find((tensor) => !body.has(tensor) && tensor.inputs.length > 0 && !canLeave(tensor))
    if (stuck === undefined) return body
    keep([stuck])
  }
}
