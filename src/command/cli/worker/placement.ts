/**
 * Chooses where the ranks of a training and the orchestrators of a multi-run trainer work: on this machine or on a cluster.
 */
import { Effect, Layer, Option } from "effect"
import type { WorkerError } from "../../../spread/workers/WorkerError.ts"
import { parseUrl } from "../../../spread/cluster/databaseUrl.ts"
import { ownAddress } from "../../../spread/cluster/network-node.ts"
import type { BackendName } from "../../../tensor/backend/names.ts"
import type { PlacedOrchestrators } from "../../../trainer/placement/PlacedOrchestrators.ts"
import { processesOn, layer as rankProcesses, redisStores } from "../../../trainer/ranks/processes-node.ts"
import type { RankProcesses } from "../../../trainer/ranks/RankProcesses.ts"
import type { RedisStores } from "../../../trainer/ranks/rankStore.ts"
import { platform, trainingRanks } from "../../../node.ts"
import { slicesHandler, startJob } from "../../../spread/ranks/jobs-node.ts"
import { ranksBy } from "../../../spread/ranks/ranks-node.ts"
import type { TrainingRanks } from "../../../spread/ranks/TrainingRanks.ts"
import { dispatcherLayer } from "./cluster.ts"

// These modules are loaded only when they are needed, because they know the config of trainers.
const rankJobsModule = Effect.promise(() => import("../../../trainer/placement/rankJobs-node.ts"))
const orchestratorJobsModule = Effect.promise(() => import("../../../trainer/placement/orchestratorJobs-node.ts"))

interface WorkerPlacement {
  readonly backend: BackendName
  /** The number of threads for computing in each process on this machine. */
  readonly threads?: number
  readonly cluster: Option.Option<string>
  /** The address of the inference server to which the orchestrators send requests. */
  readonly server: Option.Option<string>
}

/**
 * Provides the parts of a training that work in other processes: on workers of the cluster that the user named, otherwise on
 * this machine.
 */
export const placementLayer = ({
  backend,
  threads = 1,
  cluster,
  server,
}: WorkerPlacement): Layer.Layer<RankProcesses | RedisStores | TrainingRanks, WorkerError> => {
  if (Option.isNone(cluster)) return Layer.merge(rankProcesses({ backend, threads }), trainingRanks({ threads }))
  const host = Effect.flatMap(parseUrl(cluster.value), ownAddress)
  const ranks = Layer.unwrap(Effect.map(rankJobsModule, ({ rankJobs }) => rankJobs({ backend, processesOn })))
  const orchestrators = (url: string): Layer.Layer<PlacedOrchestrators> =>
    Layer.unwrap(Effect.map(orchestratorJobsModule, ({ orchestratorJobs }) => orchestratorJobs({ server: url }))).pipe(
      Layer.provide(platform),
    )
  return Layer.mergeAll(
    Layer.provide(ranks, platform),
    ranksBy({ start: startJob, host, threads }),
    Option.match(server, { onNone: () => Layer.empty, onSome: orchestrators }),
  ).pipe(Layer.provideMerge(redisStores), Layer.provideMerge(dispatcherLayer(cluster)))
}

/** Makes the code of a worker that serves as ranks of trainings, and plays the tasks of trainers' runs. */
export const placementHandlers = (worker: string) =>
  Effect.gen(function* () {
    const { rankHandler } = yield* rankJobsModule
    const { orchestratorHandler } = yield* orchestratorJobsModule
    return [
      slicesHandler,
      yield* Effect.provide(rankHandler({ worker, processesOn }), redisStores),
      yield* orchestratorHandler(worker),
    ]
  })
