import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import * as fc from "fast-check"
import * as Rng from "../src/base/rng/Rng.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { typesInC } from "../src/tensor/c/literals.ts"
import { programInC } from "../src/tensor/c/program.ts"
import * as G from "../src/tensor/graph/ops.ts"
import type { TensorData } from "../src/tensor/graph/Tensor.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { replaced } from "../src/tensor/graph/replaced.ts"
import { sizeOf, type Tensor } from "../src/tensor/graph/Tensor.ts"
import { tries } from "../test/house/tries.ts"
import { bytesFrom, inFolder, isInstalled, output } from "../test/rl/export/programs.ts"
import { compileWith, identical } from "./support/agreement.ts"
import { checkEveryOp } from "./support/everyOp.ts"
import { choices, grow } from "./support/randomGraph.ts"

/** Returns a program whose states are inputs, and whose next states are outputs. */
const withoutStates = (spec: ProgramSpec): ProgramSpec => {
  const states = Object.entries(spec.state)
  const nexts = states.flatMap(([name, { next }]) => (next === undefined ? [] : [[`next_${name}`, next] as const]))
  const outputs = { ...spec.outputs, ...Object.fromEntries(nexts) }
  const names = new Map(states.map(([name, { tensor }]) => [tensor, `state_${name}`]))
  const inputs = new Map<Tensor, Tensor>()
  for (const [tensor, name] of names) inputs.set(tensor, G.input(name, tensor.shape))
  const replacementOf = replaced(Object.values(outputs), (tensor) => inputs.get(tensor))
  return {
    name: spec.name,
    inputs: {
      ...spec.inputs,
      ...Object.fromEntries(
        [...inputs.values()].flatMap((one) => (one.op.kind === "input" ? [[one.op.name, one]] : [])),
      ),
    },
    state: {},
    outputs: Object.fromEntries(Object.entries(outputs).map(([name, tensor]) => [name, replacementOf(tensor)])),
  }
}

const named = (record: ProgramSpec["inputs"], prefix: string) =>
  Object.fromEntries(Object.keys(record).map((name, i) => [name, `${prefix}${i}`]))

/** Writes a program as C, with a function that reads its inputs and writes its outputs. */
const inC = (spec: ProgramSpec, index: number): string => {
  const prefix = `p${index}_`
  const [inputs, outputs] = [named(spec.inputs, "in"), named(spec.outputs, "out")]
  const program = programInC(spec, { prefix, inputs, outputs })
  const arrays = (record: ProgramSpec["inputs"], names: Readonly<Record<string, string>>): ReadonlyArray<string> =>
    Object.entries(record).map(
      ([name, { dtype, shape }]) => `static ${typesInC[dtype]} ${names[name]}[${sizeOf(shape)}];`,
    )
  return [
    ...program.constants,
    ...program.functions,
    program.compute,
    `static int ${prefix}run(void) {`,
    ...arrays(spec.inputs, inputs),
    ...arrays(spec.outputs, outputs),
    ...Object.values(inputs).map((name) => `if (fread(${name}, sizeof ${name}, 1, stdin) != 1) return 1;`),
    `${prefix}compute(${[...Object.values(inputs), ...Object.values(outputs)].join(", ")});`,
    ...Object.values(outputs).map((name) => `fwrite(${name}, sizeof ${name}, 1, stdout);`),
    "return 0;\n}",
  ].join("\n")
}

type Fill = (feed: TensorData, name: string) => void

const waves: Fill = (feed, name) => feed.forEach((_, i) => void (feed[i] = Math.fround(Math.cos(i * 5 + name.length))))

/** Compiles programs as one file of C, and compares the results of each with its WebAssembly. */
const assertSameBits = (specs: ReadonlyArray<ProgramSpec>, fill: Fill = waves): void =>
  inFolder((folder) => {
    const programs = specs.map((spec) => compileWith(Wasm.layer, spec))
    const feeds: Array<Uint8Array> = []
    programs.forEach((program, at) => {
      for (const name of Object.keys(specs[at].inputs)) {
        const feed = program.feeds[name]
        fill(feed, name)
        feeds.push(Uint8Array.from(new Uint8Array(feed.buffer, feed.byteOffset, feed.byteLength)))
      }
      program.runSync?.()
    })
    const [source, binary] = [join(folder, "programs.c"), join(folder, "programs")]
    const main = specs.map((_, i) => `if (p${i}_run() != 0) return 1;`).join("\n")
    const head = "#include <stdint.h>\n#include <string.h>\n#include <math.h>\n#include <stdio.h>"
    writeFileSync(source, `${[head, ...specs.map(inC)].join("\n\n")}\nint main(void) {\n${main}\nreturn 0;\n}\n`)
    output("gcc", ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-o", binary, source])
    const bytes = bytesFrom(binary, Buffer.concat(feeds))
    let offset = 0
    programs.forEach(({ results }, at) => {
      for (const name of Object.keys(specs[at].outputs)) {
        const expected = results[name]
        const own = bytes.slice(offset, (offset += expected.byteLength))
        const found = new (
          expected instanceof Float32Array ? Float32Array : expected instanceof Int32Array ? Int32Array : Uint8Array
        )(own.buffer)
        assert.isUndefined(identical(found, expected), `${specs[at].name}: ${name}`)
      }
    })
    assert.strictEqual(offset, bytes.length)
  })

describe.skipIf(!isInstalled("gcc"))("programs as portable C compute the bits of WebAssembly", () => {
  it("of any graph, for results and gradients", () => {
    assertSameBits(fc.sample(choices.map(grow), tries(40)).map(withoutStates))
  })

  it("of every op and its gradients, in any size", () => {
    const specs: Array<ProgramSpec> = []
    checkEveryOp([35, 35], 1, (spec) => void specs.push(spec))
    assertSameBits(specs)
  })

  it("of every function, for numbers of any bits", () => {
    const [x, y] = [G.input("x", [4096]), G.input("y", [4096])]
    const unary = {
      abs: G.abs,
      cos: G.cos,
      exp: G.exp,
      floor: G.floor,
      log: G.log,
      neg: G.neg,
      reciprocal: G.reciprocal,
      relu: G.relu,
    }
    const others = { sigmoid: G.sigmoid, sign: G.sign, sin: G.sin, softplus: G.softplus, sqrt: G.sqrt, tanh: G.tanh }
    const outputs = {
      ...Object.fromEntries(Object.entries({ ...unary, ...others }).map(([name, fn]) => [name, fn(x)])),
      pow: G.pow(x, y),
      smaller: G.minimum(x, y),
      larger: G.maximum(x, y),
      int: G.cast(x, "i32"),
      within: G.clip(x, -2, 3),
      isLess: G.less(x, y),
      chosen: G.where(G.lessEqual(x, y), x, y),
    }
    const special = [
      0,
      -0,
      1,
      -1,
      0.5,
      1.5,
      2.5,
      -2.5,
      Infinity,
      -Infinity,
      NaN,
      1e-45,
      -1e-45,
      1e-38,
      3.4e38,
      2 ** 31,
      -(2 ** 31),
      1e9,
    ]
    const random = Rng.stream(3)
    // Numbers of usual sizes, numbers of any bits, and pairs of special ones.
    const drawn: Fill = (feed, name) => {
      if (!(feed instanceof Float32Array)) return
      const words = new Uint32Array(feed.buffer, feed.byteOffset, feed.length)
      for (let i = 0; i < 2048; i++) feed[i] = 10 * random.normal()
      for (let i = 2048; i < feed.length; i++) words[i] = random.integer(2 ** 32)
      for (let i = 0; i < special.length ** 2; i++)
        feed[i] = special[name === "x" ? i % special.length : Math.floor(i / special.length)]
    }
    assertSameBits([{ name: "functions", inputs: { x, y }, state: {}, outputs }], drawn)
  })
})
