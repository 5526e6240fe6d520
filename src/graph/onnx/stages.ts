import { add, constant, gather, input } from "../ops.ts"
import { indicesFeed, type Minibatches, type ProgramSpec } from "../Program.ts"
import { sizeOf, type Tensor, topologicalOrder } from "../Tensor.ts"
import { rootsOf } from "../validate.ts"
import { counted, isLiftable, lift, repeated } from "./lift.ts"

/**
 * What of a program with minibatches has to be in the loop, and what has not. A loop's body is charged for once an
 * iteration, node by node, so only what depends on the state that the iterations hand on stays there:
 *
 * - what no iteration changes is computed once, before;
 * - what depends on an iteration's rows or number alone (normalised advantages, one-hot actions, Adam's bias
 *   corrections) is computed before, for all iterations at once;
 * - what only results need (metrics) is computed after, for all iterations at once.
 */
export interface Stages {
  /** The whole feeds and the state at the start, by name: what `before` is computed from. */
  readonly feeds: ReadonlyMap<string, Tensor>
  /** The same in each iteration: computed before the loop and read from within it. */
  readonly fixed: ReadonlyArray<Tensor>
  /** By tensor of the body: all its values, [count, ...shape]. */
  readonly series: ReadonlyMap<Tensor, Tensor>
  /** Gathered inputs that are too large to be laid out for all iterations. */
  readonly gatheredInside: ReadonlyArray<readonly [string, Tensor]>
  readonly body: ReadonlyArray<Tensor>
  /** What the loop hands on. */
  readonly carried: ReadonlyArray<Carried>
  /** State that counts iterations: its value at the end is known beforehand. */
  readonly counters: ReadonlyArray<readonly [string, Tensor]>
  /** Tensors of the body that results are made of, and what stands for all their values behind the loop. */
  readonly collected: ReadonlyMap<Tensor, Tensor>
  /** By output: what gives [count, ...shape] behind the loop. */
  readonly results: Readonly<Record<string, Tensor>>
}

export interface Carried {
  readonly name: string
  readonly tensor: Tensor
  readonly next: Tensor
}

/** Elements, over all iterations, up to which rows are laid out before the loop. */
const mostLaidOut = 1 << 22
/** Up to which arithmetic is moved out of the loop: above that a node is cheap, and memory is not. */
const mostMoved = 1 << 17

export const stagesOf = (spec: ProgramSpec, minibatches: Minibatches): Stages => {
  const { count, batch, rows, continueWhile } = minibatches
  const over = (tensor: Tensor): number => count * sizeOf(tensor.shape)
  // How many iterations there will be is known beforehand only where nothing can end them.
  const countKnown = continueWhile === undefined

  const feeds = new Map<string, Tensor>()
  const fixed = new Set<Tensor>()
  const series = new Map<Tensor, Tensor>()
  const gatheredInside: Array<readonly [string, Tensor]> = []
  const carried: Array<Carried> = []
  const counters: Array<readonly [string, Tensor]> = []

  const indices = input(indicesFeed, [count, batch], "i32")
  feeds.set(indicesFeed, indices)
  for (const [name, tensor] of Object.entries(spec.inputs)) {
    if (!minibatches.gathered.includes(name)) {
      feeds.set(name, tensor)
      fixed.add(tensor)
      continue
    }
    const whole = input(name, [rows, ...tensor.shape.slice(1)], tensor.dtype)
    feeds.set(name, whole)
    if (over(tensor) <= mostLaidOut && tensor.shape.length < 6) series.set(tensor, gather(whole, indices))
    else gatheredInside.push([name, tensor])
  }
  for (const [name, { tensor, next }] of Object.entries(spec.state)) {
    const step = next === undefined ? undefined : stepOf(tensor, next)
    if (next === undefined) fixed.add(tensor)
    else if (step !== undefined && countKnown && over(tensor) <= mostMoved) {
      series.set(tensor, add(tensor, counted(step, count, tensor.shape)))
      counters.push([name, add(tensor, constant(step * count))])
    } else carried.push({ name, tensor, next })
  }

  const order = topologicalOrder(rootsOf(spec))
  const inside: Array<Tensor> = []
  for (const tensor of order) {
    const { inputs, op } = tensor
    if (fixed.has(tensor) || series.has(tensor) || op.kind === "input" || op.kind === "state") continue
    const early = inputs.every((source) => fixed.has(source) || series.has(source))
    const light = (source: Tensor): boolean => fixed.has(source) || over(source) <= mostMoved
    if (inputs.every((source) => fixed.has(source))) fixed.add(tensor)
    else if (early && isLiftable(tensor) && light(tensor) && inputs.every(light))
      series.set(
        tensor,
        lift(tensor, count, (source) => series.get(source)),
      )
    else inside.push(tensor)
  }

  // The counters' own next values are known: nothing in the loop is done for them alone.
  const handedOn = [...carried.map(({ next }) => next), ...(continueWhile === undefined ? [] : [continueWhile])]
  const insideSet = new Set([...inside, ...carried.map(({ tensor }) => tensor), ...gatheredInside.map(([, x]) => x)])
  const body = bodyOf(spec, handedOn, insideSet, countKnown ? (tensor) => over(tensor) <= mostMoved : () => false)

  const collected = new Map<Tensor, Tensor>()
  const later = new Map<Tensor, Tensor>()
  const behind = (tensor: Tensor): Tensor | undefined => {
    if (fixed.has(tensor)) return undefined
    const known = series.get(tensor) ?? later.get(tensor)
    if (known !== undefined) return known
    if (!insideSet.has(tensor)) return undefined
    const made =
      body.has(tensor) || !inside.includes(tensor)
        ? input(`collected ${collected.size}`, [count, ...tensor.shape], tensor.dtype)
        : lift(tensor, count, behind)
    if (body.has(tensor) || !inside.includes(tensor)) collected.set(tensor, made)
    later.set(tensor, made)
    return made
  }
  const results = Object.fromEntries(
    Object.entries(spec.outputs).map(([name, tensor]) => [name, behind(tensor) ?? repeated(tensor, count)]),
  )
  return {
    feeds,
    fixed: order.filter((tensor) => fixed.has(tensor)),
    series,
    gatheredInside,
    body: inside.filter((tensor) => body.has(tensor)),
    carried,
    counters,
    collected,
    results,
  }
}

/** The whole number that each iteration adds to a state, if that is all that it does to it. */
const stepOf = (state: Tensor, { op, inputs }: Tensor): number | undefined => {
  if (op.kind !== "binary" || op.fn !== "add" || !inputs.includes(state)) return undefined
  const other = inputs[0] === state ? inputs[1] : inputs[0]
  if (other.op.kind !== "constant" || other.op.data.length !== 1 || other.shape.length > state.shape.length)
    return undefined
  const [step] = other.op.data
  return Number.isInteger(step) ? step : undefined
}

/**
 * What stays inside: all that is handed on depends on, what cannot be done for many iterations at once, and what would
 * need something large carried out of the loop.
 */
const bodyOf = (
  spec: ProgramSpec,
  handedOn: ReadonlyArray<Tensor>,
  inside: ReadonlySet<Tensor>,
  movable: (tensor: Tensor) => boolean,
): ReadonlySet<Tensor> => {
  const body = new Set<Tensor>()
  const keep = (roots: ReadonlyArray<Tensor>): void => {
    for (const tensor of topologicalOrder(roots)) if (inside.has(tensor)) body.add(tensor)
  }
  keep(handedOn)
  const forResults = topologicalOrder(Object.values(spec.outputs)).filter((tensor) => inside.has(tensor))
  const leaves = (tensor: Tensor): boolean => tensor.inputs.length === 0
  for (;;) {
    const stuck = forResults.find(
      (tensor) =>
        !body.has(tensor) &&
        !leaves(tensor) &&
        !(
          isLiftable(tensor) &&
          movable(tensor) &&
          tensor.inputs.every((source) => !inside.has(source) || movable(source))
        ),
    )
    if (stuck === undefined) return body
    keep([stuck])
  }
}
