import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { hasPostgres, type Postgres, startPostgres } from "../../../spread/cluster/postgres.ts"
import { killAll, startWorker } from "../../../spread/cluster/workers.ts"
import { effect, program, start, withFolder, write } from "../effect.ts"

if (!hasPostgres)
  console.warn("tune/cluster.slow.test.ts: postgresql is not installed here, so clusters are NOT tested")

const space = `
trials: 6
parallel: 3
sampler: { startup: 3 }
pruner: { name: asha, min_steps: 512, reduction: 2, warmup: 2 }
parameters:
  algorithm.learning_rate: { log_uniform: [1e-4, 1e-2] }
`

describe.skipIf(!hasPostgres)("a study on a cluster", () => {
  let postgres: Postgres
  beforeAll(async () => void (postgres = await startPostgres()))
  afterEach(killAll)
  afterAll(() => postgres.remove())

  it("has the trials of one machine, although a worker is killed in the middle", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", program("validation: { everySteps: 512, episodes: 5 }"))
      const args = ["tune", file, "--space", write(folder, "space.yaml", space), "--quiet"]
      const trials = (results: string): string => {
        const time = readdirSync(join(folder, results)).find((name) => /^\d{4}-/.test(name)) ?? ""
        return readFileSync(join(folder, results, time, "trials.jsonl"), "utf8")
      }
      const alone = await effect([...args, "--results-dir", "alone"], folder)
      assert.strictEqual(alone.code, 0, alone.stderr)

      const [doomed, other] = [0, 1].map(() => startWorker(postgres.url, folder, ["--slots", "2"]))
      await Promise.all([doomed, other].map((worker) => worker.says(/joined/)))
      const study = start([...args, "--results-dir", "spread", "--cluster", postgres.url], folder)
      await doomed.says(/begins run/)
      doomed.child.kill("SIGKILL")
      const { code, stderr } = await study.ended
      assert.strictEqual(code, 0, stderr)
      assert.strictEqual(trials("spread"), trials("alone"))
      assert.notInclude(readdirSync(join(folder, "spread")), ".attempts")
    }))
})
