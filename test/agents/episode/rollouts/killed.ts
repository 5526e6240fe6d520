/** `node killed.ts FILE [EPISODE]`: writes a batch to a file; at an episode it stays for ever, to be killed there. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, Layer } from "effect"
import * as RolloutEngine from "../../../../src/agents/episode/rollouts/RolloutEngine.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import { batchOf, failing, parrot } from "./batch.ts"

export const killedBatch = (stay: number): RolloutEngine.RolloutBatch => {
  const wait = (episode: number) => (episode === stay ? Effect.never : Effect.sleep((episode * 7) % 11))
  const protocol = failing(SingleAgent.make(parrot(wait)), (episode) => (episode % 9 === 0 ? Infinity : 0))
  return batchOf(200, { concurrency: 8, protocol })
}

if (import.meta.main) {
  const [file = "", stay = "0"] = process.argv.slice(2)
  const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)
  await RolloutEngine.write(killedBatch(Number(stay)), file).pipe(Effect.provide(files), Effect.runPromise)
}
