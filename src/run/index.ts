/** Exports everything about a run: its life, its folder, its store, and how it is found and read again. */
export * as Checkpoint from "./Checkpoint.ts"
export * as Checkpoints from "./Checkpoints.ts"
export * as FileTree from "./store/FileTree.ts"
export * as Folder from "./store/Folder.ts"
export {
  foldersIn,
  type ObjectInfo,
  ObjectStore,
  storedRuns,
  type VersionedObject,
  type Versions,
} from "./store/objects/ObjectStore.ts"
export * as S3 from "./store/objects/s3.ts"
export { RunStore, RunStoreError } from "./store/RunStore.ts"
export type { RunIdentity } from "./identifier.ts"
export { csv } from "./record/csv.ts"
export { listening } from "./record/listening.ts"
export { progress } from "./record/progress.ts"
export { Recorder, type Recording, type Sink } from "./record/Recorder.ts"
export type { RunEvent } from "./record/RunEvent.ts"
export { runLog } from "./record/runLog.ts"
export * as ScoreRecords from "./record/ScoreRecords.ts"
export { scores } from "./record/scores.ts"
export { telemetry } from "./record/telemetry.ts"
export { tensorBoard } from "./record/tensorBoard.ts"
export { RunOptions } from "./RunOptions.ts"
export { RunResult } from "./RunResult.ts"
