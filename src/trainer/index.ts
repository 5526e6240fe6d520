/** Exports the trainer of language models, which trains many runs at the same time. */
export * as RolloutFiles from "./batches/rolloutFiles.ts"
export { DataLoader, type DataLoaderOptions, type Turn } from "./batches/DataLoader.ts"
export { countTurn } from "./batches/Turn.ts"
export * as Packer from "./batches/Packer.ts"
export * as TrainingSamples from "./batches/TrainingSample.ts"
export * as RunFolder from "./runs/guardedFolder.ts"
export { type BroadcastOptions, type BroadcastOutcome, Broadcasts, type WeightFiles } from "./weights/Broadcasts.ts"
export * as RunCheckpoints from "./weights/checkpoints.ts"
export { makeDecoders } from "./weights/decoders.ts"
export * as SavedModel from "./weights/SavedModel.ts"
export * as ReceivedBroadcasts from "./weights/receive.ts"
export * as MultirunLayout from "./Layout.ts"
export * as MultiLoRAOptimizer from "./optimisers/MultiLoRAOptimizer.ts"
export * as MultiLoRAScheduler from "./optimisers/MultiLoRAScheduler.ts"
export * as MultiRun from "./MultiRun.ts"
export * as OrchestratorConfig from "./config/OrchestratorConfig.ts"
export * as RedisStore from "./store/redisStore.ts"
export { Runs, type Status as RunsStatus } from "./runs/Runs.ts"
export type { DiscoveredRun, Hook, Hooks, InvalidRun, RunChange, RunSlot } from "./runs/RunSlot.ts"
export type { Progress, TrainedRun } from "./runs/TrainedRun.ts"
export { Store } from "./store/Store.ts"
export { TrainerError } from "./TrainerError.ts"
export {
  type AdamParams,
  type LossData,
  type NewModel,
  type SampleRequest,
  type TinkerAddress,
  TinkerClient,
  type TinkerModel,
  type TinkerSampler,
} from "./tinker/client/TinkerClient.ts"
export { TinkerError } from "./tinker/client/TinkerError.ts"
