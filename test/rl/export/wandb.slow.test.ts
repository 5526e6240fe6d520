import { execFile, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { TrackedRun } from "../../../src/command/trackers/TrackedRun.ts"
import { wandbFolder } from "../../../src/command/trackers/wandb.ts"
import { fakeWandb } from "./fakeWandb.ts"
import { recordsIn } from "./wandbLog.ts"

/** The Python with W&B's client: EFFECT_RL_PYTHON, or python3. */
const python = process.env.EFFECT_RL_PYTHON ?? "python3"

const can = (code: string): boolean => {
  const isThere = spawnSync(python, ["-c", code]).status === 0
  if (!isThere) console.log(`skipped: ${python} cannot import wandb; EFFECT_RL_PYTHON can name another Python`)
  return isThere
}

/** Imports the code that W&B generates from `wandb_internal.proto`, without the rest of its client. */
const messages = `
import importlib.util, sys, types
wandb = types.ModuleType("wandb")
wandb.__path__ = importlib.util.find_spec("wandb").submodule_search_locations
sys.modules["wandb"] = wandb
from wandb.proto import wandb_internal_pb2
`
const reader = `${messages}
import base64, json
from google.protobuf.json_format import MessageToDict
for line in sys.stdin:
    record = wandb_internal_pb2.Record()
    record.ParseFromString(base64.b64decode(line))
    print(json.dumps(MessageToDict(record, preserving_proto_field_name=True)))
`

/** Enough metrics that the log has several blocks. */
const tracked: TrackedRun = {
  experiment: "cars",
  name: "2026-01-31_12-00-00 7",
  state: "stopped",
  startedAtMillis: Date.UTC(2026, 0, 31, 12, 0, 0, 250),
  endedAtMillis: Date.UTC(2026, 0, 31, 12, 1, 30, 250),
  settings: { env: "CartPole-v1", algorithm: { name: "ppo", hidden: [64, 32] } },
  commit: "0123abc",
  digest: "d1g357",
  events: Array.from({ length: 2000 }, (_, index) => ({
    step: 128 * index,
    wallSeconds: 1769860801.5 + index / 8,
    metrics: { "losses/entropy": index === 7 ? NaN : 1 / (index + 1), "charts/SPS": index === 8 ? -Infinity : 1000 },
  })),
  files: { "config.yaml": Buffer.from("seed: 7\n"), "policy.onnx": Buffer.alloc(100_000, 3) },
}

describe("Weights & Biases' own client", () => {
  it.effect.skipIf(!can(messages))("reads the records with its own code", () =>
    Effect.gen(function* () {
      const { files } = yield* wandbFolder(tracked, { id: "mine", notes: "é", group: "g", entity: "ada" })
      const { records } = recordsIn(files["run-mine.wandb"])
      const input = records.map((record) => record.toString("base64")).join("\n")
      const { stdout, stderr } = spawnSync(python, ["-c", reader], { input, encoding: "utf8", maxBuffer: 1 << 28 })
      const read = stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
      assert.strictEqual(read.length, 2005, stderr)
      assert.deepEqual(read[0], {
        num: "1",
        run: {
          run_id: "mine",
          entity: "ada",
          project: "cars",
          config: {
            update: [
              { key: "env", value_json: `"CartPole-v1"` },
              { key: "algorithm", value_json: `{"name":"ppo","hidden":[64,32]}` },
            ],
          },
          run_group: "g",
          job_type: "train",
          display_name: tracked.name,
          notes: "é",
          tags: ["CartPole-v1", "ppo"],
          start_time: "2026-01-31T12:00:00.250Z",
          git: { commit: "0123abc" },
        },
      })
      assert.deepEqual(read[2], {
        num: "3",
        history: {
          item: [
            { key: "losses/entropy", value_json: "0.5" },
            { key: "charts/SPS", value_json: "1000" },
            { key: "_step", value_json: "128" },
            { key: "_timestamp", value_json: "1769860801.625" },
            { key: "_runtime", value_json: "1.375" },
          ],
          step: { num: "128" },
        },
      })
      assert.deepEqual(read.slice(2001), [
        {
          num: "2002",
          summary: {
            update: [
              { key: "losses/entropy", value_json: "0.0005" },
              { key: "charts/SPS", value_json: "1000" },
              { key: "_step", value_json: "255872" },
              { key: "_timestamp", value_json: "1769861051.375" },
              { key: "_runtime", value_json: "251.125" },
              { key: "effect_rl/digest", value_json: `"d1g357"` },
              { nested_key: ["_wandb", "runtime"], value_json: "90" },
            ],
          },
        },
        {
          num: "2003",
          files: {
            files: [
              { path: "run/config.yaml", policy: "END" },
              { path: "run/policy.onnx", policy: "END" },
            ],
          },
        },
        { num: "2004", exit: { exit_code: 255, runtime: 90 } },
        { num: "2005", final: {} },
      ])
    }),
  )

  it.live.skipIf(!can("import wandb"))("uploads the folder: wandb sync", () =>
    Effect.gen(function* () {
      const { url, sent } = yield* fakeWandb
      const home = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-wandb-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
      )
      const { name, files } = yield* wandbFolder(tracked)
      for (const [path, bytes] of Object.entries(files)) {
        mkdirSync(dirname(join(home, "wandb", name, path)), { recursive: true })
        writeFileSync(join(home, "wandb", name, path), bytes)
      }
      const env = {
        ...process.env,
        HOME: home,
        WANDB_BASE_URL: url,
        WANDB_API_KEY: "0123456789".repeat(4),
        WANDB_ERROR_REPORTING: "false",
      }
      const sync = promisify(execFile)(python, ["-m", "wandb", "sync", join("wandb", name)], { cwd: home, env })
      const { stderr } = yield* Effect.promise(() => sync)
      assert.include(stderr, "Finished syncing", stderr)
      const id = name.split("-").at(-1)
      const { config, ...run } = sent.runs[0]
      assert.include(run, { name: id, project: "cars", displayName: tracked.name, commit: "0123abc", jobType: "train" })
      assert.deepEqual(run.tags, ["CartPole-v1", "ppo"])
      assert.deepInclude(JSON.parse(String(config)), { algorithm: { value: { name: "ppo", hidden: [64, 32] } } })
      assert.strictEqual(sent.history.length, 2000)
      assert.deepEqual(JSON.parse(sent.history[1]), {
        "losses/entropy": 0.5,
        "charts/SPS": 1000,
        _step: 128,
        _timestamp: 1769860801.625,
        _runtime: 1.375,
      })
      assert.include(sent.history[7], `"losses/entropy":NaN`)
      assert.include(sent.history[8], `"charts/SPS":-Infinity`)
      assert.deepInclude(JSON.parse(sent.summary), {
        _step: 255872,
        "effect_rl/digest": "d1g357",
        _wandb: { runtime: 90 },
      })
      assert.deepEqual([sent.exitCode, sent.unknown], [255, []])
      for (const [path, bytes] of Object.entries(tracked.files)) {
        assert.deepEqual(sent.files.get(`run/${path}`), bytes, path)
      }
    }).pipe(Effect.scoped),
  )
})
