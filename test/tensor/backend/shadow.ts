/** A backend that runs every program on two backends, from the same numbers, and reports by how much the results differ. */
import { Effect, Record } from "effect"
import { type Backend, compileOne, type Program } from "../../../src/tensor/backend/Backend.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"

/** The largest difference of a program's numbers from those of the reference; relative, for numbers above 1. */
export type Differences = Record<string, number>

/** Returns the largest difference between two lists of numbers; Infinity if only one of two numbers is NaN. */
const differenceOf = (found: ArrayLike<number>, expected: ArrayLike<number>): number => {
  let largest = 0
  for (let at = 0; at < expected.length; at++) {
    if (Object.is(found[at], expected[at])) continue
    const difference = Math.abs(found[at] - expected[at]) / Math.max(1, Math.abs(expected[at]))
    largest = Math.max(largest, Number.isNaN(difference) ? Infinity : difference)
  }
  return largest
}

/**
 * Makes a backend whose programs are those of `tested`. After each run it runs the same program on `reference`, from the
 * same states and feeds, and keeps the largest difference of each result and state in `differences`.
 */
export const shadowing = (
  tested: Backend["Service"],
  reference: Backend["Service"],
  differences: Differences,
): Backend["Service"] => {
  const shadow = (program: Program, expected: Program, spec: ProgramSpec): Program => {
    const { runSync: _, ...rest } = program
    const states = Object.keys(spec.state)
    const note = (name: string, found: ArrayLike<number>, wanted: ArrayLike<number>): void => {
      const key = `${spec.name} ${name}`
      differences[key] = Math.max(differences[key] ?? 0, differenceOf(found, wanted))
    }
    const run = Effect.gen(function* () {
      for (const [name, feed] of Object.entries(program.feeds)) expected.feeds[name].set(feed)
      for (const name of states) yield* expected.write(name, yield* program.read(name))
      yield* program.run
      yield* expected.run
      for (const [name, found] of Object.entries(program.results)) note(name, found, expected.results[name])
      for (const name of states) note(name, yield* program.read(name), yield* expected.read(name))
    })
    return { ...rest, run }
  }
  const compileAll: Backend["Service"]["compileAll"] = Effect.fnUntraced(function* (specs, options) {
    const [programs, expected] = [yield* tested.compileAll(specs, options), yield* reference.compileAll(specs, options)]
    return Record.map(programs, (program, name) => shadow(program, expected[name], specs[name]))
  })
  return { name: tested.name, compile: compileOne(compileAll), compileAll }
}
