/** Declares the names that code examples of the trainer use without a definition. It has types alone; nothing runs. */
import type { Effect } from "effect"
import type { DecoderConfig } from "../../src/decoder/networks/DecoderConfig.ts"
import type { AdapterShape } from "../../src/decoder/networks/adapters.ts"
import type { TokenObjective } from "../../src/rl/losses/Losses.ts"
import type { Owner } from "../../src/run/store/lock.ts"
import type { NamedTensors, ParameterLayout } from "../../src/tensor/graph/Parameters.ts"
import type { BaseModel } from "../../src/trainer/baseModel.ts"
import type { MicroBatch, PlacedSample } from "../../src/trainer/batches/MicroBatch.ts"
import type { Mixing } from "../../src/trainer/batches/packUnits.ts"
import type { TrainingSample } from "../../src/trainer/batches/TrainingSample.ts"
import type { SamplingConfig } from "../../src/trainer/config/OrchestratorConfig.ts"
import type { EngineTask } from "../../src/trainer/engine/EngineThreads.ts"
import type * as MultiLoRA from "../../src/trainer/optimisers/MultiLoRAOptimizer.ts"
import type { OptimiserConfig } from "../../src/trainer/optimisers/OptimiserConfig.ts"
import type { Encode } from "../../src/trainer/orchestrator/demonstrations.ts"
import type { RankTask } from "../../src/trainer/ranks/RankTask.ts"
import type { makeRunRecords } from "../../src/trainer/records/RunRecords.ts"
import type { Validation } from "../../src/trainer/records/reports.ts"
import type { ReferenceTask, ReferenceThread } from "../../src/trainer/reference/ReferenceThreads.ts"
import type { RunFolder } from "../../src/trainer/runs/guardedFolder.ts"
import type { Runs } from "../../src/trainer/runs/Runs.ts"
import type { RunSlot } from "../../src/trainer/runs/RunSlot.ts"
import type { Store } from "../../src/trainer/store/Store.ts"
import type { TrainedModel } from "../../src/trainer/trainer/TrainedModel.ts"
import type { makeTrainer } from "../../src/trainer/trainer/Trainer.ts"
import type { AdamSettings, AdamSteps } from "../../src/trainer/tinker/training/AdamSteps.ts"
import type { TinkerServerOptions } from "../../src/trainer/tinker/TinkerServer.ts"
import type { TrainingPrograms } from "../../src/trainer/tinker/training/TrainingPrograms.ts"
import type { TrainerFolder } from "../../src/trainer/trainerFolder.ts"
import type { WeightFiles } from "../../src/trainer/weights/Broadcasts.ts"

export declare const base: BaseModel
export declare const config: DecoderConfig
export declare const weights: NamedTensors
export declare const shape: AdapterShape
export declare const mixing: Mixing
export declare const objective: TokenObjective
export declare const model: TrainedModel
export declare const adapters: { readonly table: Float32Array; readonly scalings: Float32Array }
export declare const gradient: Float32Array
export declare const adamState: Parameters<AdamSteps["step"]>[0]
export declare const adamSettings: AdamSettings
export declare const optimiserConfig: OptimiserConfig
export declare const parameterLayout: ParameterLayout
export declare const tinkerOptions: TinkerServerOptions
/** The inputs of the programs of Tinker's server: a batch of windows, the loss of its tokens, and an adapter. */
export declare const gradientInputs: Parameters<TrainingPrograms["gradient"]>

export declare const run: RunSlot
export declare const updated: ReadonlyArray<RunSlot>
export declare const ready: ReadonlyArray<RunSlot>
export declare const runs: Runs["Service"]
export declare const folder: RunFolder
export declare const bytes: Uint8Array
export declare const samples: ReadonlyArray<TrainingSample>
export declare const placed: ReadonlyArray<PlacedSample>
export declare const microBatch: MicroBatch
export declare const nextMicroBatch: MicroBatch
export declare const transcripts: Validation["transcripts"]
export declare const optimizer: MultiLoRA.MultiLoRAOptimizer
export declare const recordsOptions: Parameters<typeof makeRunRecords>[0]
export declare const publish: Parameters<typeof makeTrainer>[0]["publish"]
export declare const report: Parameters<typeof makeTrainer>[0]["report"]
/** Computes on a micro-batch of the data loader. */
export declare const train: (microBatch: MicroBatch) => Effect.Effect<void>
export declare const adapterOf: (index: number) => Effect.Effect<WeightFiles>

export declare const encode: Encode
export declare const sampling: SamplingConfig
export declare const trainer: TrainerFolder
export declare const owner: Owner
export declare const store: Store["Service"]
export declare const engineTask: EngineTask
export declare const rankTask: RankTask
export declare const referenceTask: ReferenceTask
export declare const thread: ReferenceThread
