import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import * as Rng from "../../../src/base/rng/Rng.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"
import { type Env, rowSpaceOf } from "../../../src/rl/env/Env.ts"
import * as Normalise from "../../../src/rl/env/Normalise.ts"
import { make as moments } from "../../../src/rl/env/RunningMoments.ts"
import { sizeOf } from "../../../src/rl/env/Space.ts"
import { aboutText } from "../../../src/rl/policy/about.ts"
import { decodePolicy } from "../../../src/rl/policy/decodePolicy.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { bytesFrom, inFolder, output } from "./programs.ts"

/** Returns the ONNX file of a policy that has not learned anything yet. */
export const exportedPolicy = Effect.fnUntraced(function* (
  env: Env,
  algorithm: Algorithm,
  { normalised = false, name = algorithm.name, id = env.id }: { normalised?: boolean; name?: string; id?: string } = {},
) {
  const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
  const space = rowSpaceOf(env)
  const task = {
    observationSpace: space,
    actionSpace: env.actionSpace,
    numEnvs: 2,
    totalSteps: 100,
    seed: 5,
    model: env,
  }
  const learner = yield* learnerOf(configured, task)
  const statistics = moments(sizeOf(space))
  const random = Rng.stream(4)
  const values = Float32Array.from({ length: 5 * sizeOf(space) }, () => 2 + 3 * random.normal())
  statistics.update(values)
  const { observationSpace, actionSpace, actionMask } = env
  const about = { env: id, algorithm: name, step: 12, observationSpace, actionSpace }
  const text = aboutText({ ...about, hasActionMask: actionMask !== undefined })
  const preprocess = normalised ? Normalise.asGraph(statistics, { space }) : undefined
  return yield* learner.exportPolicy?.(preprocess, text) ?? Effect.die("no policy")
})

/** Observations one after another in one episode, and the bytes of the actions that a policy takes. */
export const played = Effect.fnUntraced(function* (
  onnx: Uint8Array,
  { rows, draw }: { readonly rows: number; readonly draw: (random: Rng.Stream, row: Float32Array) => void },
) {
  const { programs } = yield* decodePolicy(onnx, "policy.onnx")
  const program = yield* Wasm.make().compile(programs.main)
  const { memory, observations } = program.feeds
  const { actions, nextMemory } = program.results
  const random = Rng.stream(8)
  const seen = new Float32Array(rows * observations.length)
  const isReal = actions instanceof Float32Array
  const taken = new (isReal ? Float32Array : Int32Array)(rows * actions.length)
  const row = new Float32Array(observations.length)
  for (let i = 0; i < rows; i++) {
    draw(random, row)
    seen.set(row, i * row.length)
    observations.set(row)
    yield* program.run
    taken.set(actions, i * actions.length)
    if (nextMemory !== undefined) memory?.set(nextMemory)
  }
  return { observations: seen, actions: taken, remembers: memory !== undefined, type: isReal ? "float" : "int32_t" }
}, Effect.scoped)

const warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]

/** The ways in which a header must compile, each a program and its arguments. Only the first is strict C99. */
export const compilers = {
  gcc: ["gcc", "-std=c99", "-pedantic", "-O2", ...warnings],
  "g++": ["g++", "-x", "c++", "-std=c++11", "-pedantic", "-O2", ...warnings],
  clang: ["clang", "-std=c99", "-pedantic", "-O2", ...warnings],
} as const

/** A program that reads observations, and writes the actions. It ends with 9 if the policy's own test fails. */
const mainOf = ({ remembers, type }: { readonly remembers: boolean; readonly type: string }): string => `
#include <stdio.h>
#include "policy.h"
#include "policy.h"
int main(void) {
    static float observation[EFFECT_POLICY_OBSERVATION_SIZE];
    static ${type} action[EFFECT_POLICY_ACTION_SIZE];
    ${remembers ? "effect_policy_state state;\n    effect_policy_reset(&state);" : ""}
    if (effect_policy_test() != 0.0f) return 9;
    while (fread(observation, sizeof observation, 1, stdin) == 1) {
        effect_policy_act(observation, ${remembers ? "&state, " : ""}action);
        fwrite(action, sizeof action, 1, stdout);
    }
    return 0;
}
`

/** Compiles a header, and returns the bytes of the actions for some observations. It may have no warnings, and no libraries. */
export const compiledActions = (
  header: string,
  [compiler, ...flags]: ReadonlyArray<string>,
  { observations, ...main }: Effect.Success<ReturnType<typeof played>>,
): Uint8Array =>
  inFolder((folder) => {
    const source = join(folder, "main.c")
    const program = join(folder, "main")
    writeFileSync(join(folder, "policy.h"), header)
    writeFileSync(source, mainOf(main))
    output(compiler, [...flags, source, "-o", program])
    return bytesFrom(program, new Uint8Array(observations.buffer))
  })
