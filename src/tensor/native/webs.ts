/**
 * Gives each independent value of a function a local of its own. The compiler of WebAssembly modules uses one local for
 * several values, one after another; `merge.ts` needs to know which assignments belong together.
 */
import { type DecodedFunction, mapLocals, mapValues, type Step, type Value, valuesOf } from "./code.ts"

/** A function whose locals are no longer shared. The parameters keep their numbers. */
export const separated = (fn: DecodedFunction): DecodedFunction => {
  const separation = new Separation(fn)
  const body = separation.steps(fn.body)
  const result = fn.result && separation.read(fn.result)
  return separation.finished({ ...fn, body, result })
}

/** Adds the locals that a value reads to `reads`, unless they are in `written`. */
const addReads = (value: Value, written: ReadonlySet<number>, reads: Set<number>): void =>
  void mapLocals(value, (local) => {
    if (!written.has(local.local)) reads.add(local.local)
    return local
  })

/** Finds the locals that steps write (`written`), and those that they may read before that (`reads`). */
const scan = (steps: ReadonlyArray<Step>, written: Set<number>, reads: Set<number>): void => {
  for (const step of steps) {
    if (step.kind === "loop") scan(step.body, written, reads)
    for (const value of valuesOf(step)) addReads(value, written, reads)
    if (step.kind === "set") written.add(step.local)
    if (step.kind === "call" && step.result !== undefined) written.add(step.result)
    // The body of `when` may not run, so what it writes does not count as written.
    if (step.kind === "when") scan(step.body, new Set(written), reads)
  }
}

const writtenIn = (steps: ReadonlyArray<Step>): ReadonlySet<number> => {
  const written = new Set<number>()
  for (const step of steps) {
    if (step.kind === "set") written.add(step.local)
    if (step.kind === "call" && step.result !== undefined) written.add(step.result)
    if (step.kind === "when" || step.kind === "loop") for (const local of writtenIn(step.body)) written.add(local)
  }
  return written
}

class Separation {
  /** For each new local, another one that holds the same value; a local that refers to itself stands for all of them. */
  private readonly same: Array<number>
  private readonly types: Array<DecodedFunction["locals"][number]>
  /** The new local that holds the value of each old local at the current step. */
  private current: Array<number>

  constructor({ locals }: DecodedFunction) {
    this.types = [...locals]
    this.same = locals.map((_, local) => local)
    this.current = locals.map((_, local) => local)
  }

  private find(local: number): number {
    let root = local
    while (this.same[root] !== root) root = this.same[root]
    this.same[local] = root
    return root
  }

  private join(a: number, b: number): void {
    const [first, second] = [this.find(a), this.find(b)]
    this.same[Math.max(first, second)] = Math.min(first, second)
  }

  private write(local: number): number {
    const added = this.same.length
    this.same.push(added)
    this.types.push(this.types[local])
    this.current[local] = added
    return added
  }

  read(value: Value): Value {
    return mapLocals(value, (local) => ({ ...local, local: this.current[local.local] }))
  }

  steps(steps: ReadonlyArray<Step>): ReadonlyArray<Step> {
    return steps.map((step) => this.step(step))
  }

  private step(step: Step): Step {
    switch (step.kind) {
      case "loop": {
        const reads = new Set<number>()
        scan([step], new Set(), reads)
        const before = [...this.current]
        const body = this.steps(step.body)
        const condition = this.read(step.condition)
        for (const local of reads) this.join(before[local], this.current[local])
        return { ...step, body, condition }
      }
      case "when": {
        const condition = this.read(step.condition)
        const before = [...this.current]
        const body = this.steps(step.body)
        for (const local of writtenIn(step.body)) this.join(before[local], this.current[local])
        return { ...step, body, condition }
      }
      case "set": {
        const value = this.read(step.value)
        return { ...step, value, local: this.write(step.local) }
      }
      case "call": {
        const args = step.args.map((arg) => this.read(arg))
        return step.result === undefined ? { ...step, args } : { ...step, args, result: this.write(step.result) }
      }
      default:
        return mapValues(step, (value) => this.read(value))
    }
  }

  /** Replaces all locals that hold the same value by one. */
  finished(fn: DecodedFunction): DecodedFunction {
    const numbers = new Map<number, number>()
    const numberOf = (local: number): number => {
      const root = this.find(local)
      const number = numbers.get(root) ?? numbers.size
      numbers.set(root, number)
      return number
    }
    const params = fn.params.map((_, local) => local)
    params.forEach(numberOf)
    const value = (old: Value): Value => mapLocals(old, (local) => ({ ...local, local: numberOf(local.local) }))
    const steps = (list: ReadonlyArray<Step>): ReadonlyArray<Step> =>
      list.map((old) => {
        const step = mapValues(old, value)
        if (step.kind === "loop" || step.kind === "when") return { ...step, body: steps(step.body) }
        if (step.kind === "set") return { ...step, local: numberOf(step.local) }
        if (step.kind === "call" && step.result !== undefined) return { ...step, result: numberOf(step.result) }
        return step
      })
    const body = steps(fn.body)
    const result = fn.result && value(fn.result)
    return { ...fn, body, result, locals: [...numbers.keys()].map((root) => this.types[root]) }
  }
}
