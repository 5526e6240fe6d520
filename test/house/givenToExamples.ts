/** Declares the names that code examples in doc comments use without a definition. It has types alone; nothing runs. */
import type { Effect, FileSystem, Layer } from "effect"
import type { Agent, AgentFailure } from "../../src/agents/agent/Agent.ts"
import type * as HistoryAgent from "../../src/agents/agent/HistoryAgent.ts"
import type { AgentMemory } from "../../src/agents/agent/memory/Memory.ts"
import type { Tool } from "../../src/agents/agent/Tool.ts"
import type { EnvDefinition } from "../../src/rl/env/Env.ts"
import type { MultiEnv } from "../../src/rl/env/MultiEnv.ts"
import type * as Space from "../../src/rl/env/Space.ts"
import type { TaskSet } from "../../src/agents/task/TaskSet.ts"
import type { TextEnv, TextRules } from "../../src/agents/task/TextEnv.ts"
import type { MultiTextEnv } from "../../src/agents/task/MultiTextEnv.ts"
import type { Protocol } from "../../src/agents/episode/Protocol.ts"
import type { Rollout } from "../../src/agents/episode/Rollout.ts"
import type { RolloutRequest } from "../../src/agents/episode/rollouts/RolloutRequest.ts"
import type { EpisodeToScore } from "../../src/agents/evaluate/PlayedEpisode.ts"
import type { Report } from "../../src/agents/evaluate/report/Report.ts"
import type { EpisodeRow } from "../../src/agents/evaluate/rows.ts"
import type { Tensor } from "../../src/tensor/graph/Tensor.ts"
import type { learnerOf } from "../../src/rl/learner/learnerOf.ts"
import type { Learner, Task } from "../../src/rl/learner/Learner.ts"
import type { Actor } from "../../src/rl/model/Actor.ts"
import type { Learning } from "../../src/rl/learner/replay/networks.ts"
import type { TransitionBatch } from "../../src/rl/learner/replay/ownLosses.ts"
import type { SoftLosses } from "../../src/rl/learner/replay/softUpdate.ts"
import type { Critics } from "../../src/rl/model/critic.ts"
import type { Program } from "../../src/tensor/backend/Backend.ts"
import type { WebRuntime as OnnxRuntime } from "../../src/tensor/backend/onnx-web.ts"
import type { Demonstrations } from "../../src/rl/learner/Demonstrations.ts"
import type { ReplayConfig } from "../../src/rl/learner/replay/fields.ts"
import type { ActorCritic } from "../../src/rl/model/ActorCritic.ts"
import type { NamedArray, NamedTensors, ParameterLayout } from "../../src/tensor/graph/Parameters.ts"
import type { DenseActor } from "../../src/rl/export/DenseActor.ts"
import type { Scripts } from "../../src/rl/export/worker/workerFiles.ts"
import type { NewCheckpoint } from "../../src/run/Checkpoint.ts"
import type { Channel } from "../../src/spread/ranks/Channel.ts"
import type { SlicedSpec } from "../../src/spread/ranks/SlicedSpec.ts"
import type { MlflowRun } from "../../src/command/trackers/mlflow.ts"
import type { TrackedRun } from "../../src/command/trackers/TrackedRun.ts"
import type { Detokenizer } from "../../src/decoder/inference/Job.ts"
import type { DecoderConfig } from "../../src/decoder/networks/DecoderConfig.ts"
import type { NetworkConfig } from "../../src/rl/model/trunk.ts"
import type { Sink } from "../../src/run/record/Recorder.ts"
import type { Run } from "../../src/rl/train/Train.ts"
import type { ChatModel } from "../../src/decoder/engine/ChatModel.ts"
import type { Completion, LmRequest } from "../../src/agents/lm/Chat.ts"
import type { Lm, LmService } from "../../src/agents/lm/Lm.ts"
import type { FileSource } from "../../src/run/read/FileSource.ts"
import type { RunFiles } from "../../src/run/store/RunFiles.ts"
import type { ReadableParts } from "../../src/base/formats/Weights.ts"

/** A game of two agents that take turns. */
export declare const game: MultiEnv<Space.Discrete, Space.Box>
/** A game of a fox, an owl and a hare. */
export declare const pursuit: MultiEnv<Space.Discrete, Space.Box>
export declare const myLearner: (config: { readonly learningRate: number }, task: Task) => ReturnType<typeof learnerOf>

export declare const lm: LmService
export declare const request: LmRequest
export declare const runFiles: RunFiles
export declare const fileSource: FileSource
export declare const answerTo: (request: LmRequest) => Completion
export declare const model: Layer.Layer<Lm>
export declare const chatModel: ChatModel

export declare const agent: Agent
export declare const lead: Agent
export declare const searcher: Agent
export declare const opponent: Agent
export declare const Shouting: {
  readonly make: (config: HistoryAgent.HistoryAgentConfig & { loud: boolean }) => Effect.Effect<Agent>
}
export declare const dreamsOf: (depth: number) => AgentMemory
export declare const add: Tool
export declare const lookup: Tool

export declare const training: Run
export declare const ort: OnnxRuntime
export declare const mySink: Sink
/** The function of the Vercel AI SDK. */
export declare const generateText: (options: {
  readonly model: string
  readonly prompt: string
}) => Promise<{ readonly text: string }>
export declare const runDir: string

export declare const definition: EnvDefinition<{ readonly at: number }, Space.Discrete>
/** Serves examples with one player and with several. */
export declare const env: TextEnv & MultiTextEnv
export declare const one: TextEnv
export declare const two: TextEnv
export declare const three: TextEnv
export declare const digits: ReadonlyArray<TextEnv>
export declare const others: ReadonlyArray<TextEnv>
export declare const riddlesOf: (count: number) => ReadonlyArray<TextEnv>
export declare const rules: TextRules<number>
export declare const tasks: TaskSet

export declare const protocol: Protocol
export declare const requests: ReadonlyArray<RolloutRequest>
export declare const rollouts: ReadonlyArray<Rollout>
export declare const ask: (request: RolloutRequest) => Effect.Effect<string, AgentFailure>
export declare const slow: Effect.Effect<string>
export declare const played: EpisodeToScore
export declare const rows: ReadonlyArray<EpisodeRow>
export declare const fs: FileSystem.FileSystem
/** The files of a model. */
export declare const files: ReadableParts
/** The decoded content of a file. */
export declare const said: unknown

export declare const weights: NamedTensors
export declare const replay: NamedTensors
export declare const checkpoint: NewCheckpoint
export declare const bytes: Uint8Array
export declare const config: unknown
export declare const text: string
export declare const evaluation: Effect.Effect<void>
export declare const report: Report
export declare const row: EpisodeRow
/** A run as the trackers read it. */
export declare const run: MlflowRun & TrackedRun
/** The scripts beside a policy that edge workers run. */
export declare const scripts: Scripts
export declare const denseActor: DenseActor
export declare const onnxBytes: Uint8Array

export declare const spec: SlicedSpec
export declare const prefill: SlicedSpec
export declare const decode: SlicedSpec
export declare const train: SlicedSpec
export declare const slices: ReadonlyArray<Int32Array>
export declare const results: ReadonlyArray<Float32Array>
export declare const channel: Channel
export declare const layout: ParameterLayout
export declare const loss: Tensor
export declare const theta: Tensor
export declare const gradient: Tensor

export declare const task: Task
export declare const learner: Learner
export declare const network: ActorCritic
export declare const decoderConfig: DecoderConfig
export declare const networkConfig: NetworkConfig
export declare const observations: Tensor
export declare const program: Program
export declare const demonstrations: Demonstrations
export declare const actor: Actor
export declare const critics: Critics
export declare const replayConfig: ReplayConfig
export declare const softLearning: Learning<"critic", "critic", "learningRate">
export declare const softLosses: SoftLosses
export declare const transitionBatch: TransitionBatch

/** A model with its tokenizer, as a directory of Hugging Face holds them. */
export declare const pretrained: {
  readonly config: DecoderConfig
  readonly weights: Readonly<Record<string, NamedArray>>
  readonly tokenizer: Detokenizer & { readonly encode: (text: string) => ReadonlyArray<number> }
  readonly eosIds: ReadonlyArray<number>
}
