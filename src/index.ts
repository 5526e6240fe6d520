/**
 * effect-rl: reinforcement learning as pure Effect programs.
 *
 * @example
 * ```ts
 * import { CartPole, Ppo, Train } from "effect-rl"
 *
 * export default Train.run({ env: CartPole.env, algorithm: Ppo.make(), totalSteps: 100_000 })
 * ```
 *
 * This entry point runs in every JavaScript engine; the parts that need Node are in `effect-rl/node`. Each folder
 * but `command` is an entry point, too (`effect-rl/rl`, `effect-rl/agents` …), for programs that need one of them.
 */
export * from "./base/index.ts"
export * from "./tensor/index.ts"
export * from "./spread/index.ts"
export * from "./run/index.ts"
export * from "./rl/index.ts"
export * from "./agents/index.ts"
export * from "./decoder/index.ts"
export * from "./trainer/index.ts"
