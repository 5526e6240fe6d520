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
 * This entry point runs anywhere; what needs Node is in `effect-rl/node`.
 */
export * as A2c from "./algorithm/A2c.ts"
export * as Algorithm from "./algorithm/Algorithm.ts"
export * as Ppo from "./algorithm/Ppo.ts"
export { Backend, BackendError, BackendUnavailable, type Program } from "./backend/Backend.ts"
export * as Reference from "./backend/reference.ts"
export * as Wasm from "./backend/wasm.ts"
export * as Checkpoint from "./checkpoint/Checkpoint.ts"
export * as Safetensors from "./checkpoint/safetensors.ts"
export { ConfigError } from "./config/Config.ts"
export * as Batch from "./env/Batch.ts"
export * as Acrobot from "./env/classic/Acrobot.ts"
export * as CartPole from "./env/classic/CartPole.ts"
export * as MountainCar from "./env/classic/MountainCar.ts"
export * as MountainCarContinuous from "./env/classic/MountainCarContinuous.ts"
export * as Pendulum from "./env/classic/Pendulum.ts"
export * as Env from "./env/Env.ts"
export { EnvError } from "./env/EnvError.ts"
export * as Envs from "./env/Envs.ts"
export * as EpisodeLog from "./env/EpisodeLog.ts"
export * as Normalise from "./env/Normalise.ts"
export * as RunningMoments from "./env/RunningMoments.ts"
export * as Space from "./env/Space.ts"
export * as Wrapper from "./env/Wrapper.ts"
export { RunStore, RunStoreError } from "./experiment/RunStore.ts"
export * as Distributions from "./graph/distributions.ts"
export { gradients } from "./graph/gradients.ts"
export { GraphError } from "./graph/GraphError.ts"
export * as Initialisers from "./graph/initialisers.ts"
export * as Layers from "./graph/layers.ts"
export * as Graph from "./graph/ops.ts"
export { toOnnx } from "./graph/onnx/export.ts"
export * as Optimisers from "./graph/optimisers.ts"
export * as Parameters from "./graph/Parameters.ts"
export * as Schedules from "./graph/schedules.ts"
export { progress } from "./record/progress.ts"
export { Recorder, type Recording, type Sink } from "./record/Recorder.ts"
export type { RunEvent } from "./record/RunEvent.ts"
export { runLog } from "./record/runLog.ts"
export { scores } from "./record/scores.ts"
export { tensorBoard } from "./record/tensorBoard.ts"
export * as Returns from "./returns/Returns.ts"
export * as Rng from "./rng/Rng.ts"
export { RunOptions } from "./train/RunOptions.ts"
export { RunResult } from "./train/RunResult.ts"
export * as Train from "./train/Train.ts"
