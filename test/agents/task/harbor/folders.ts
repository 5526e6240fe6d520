/** Folders of Harbor tasks for tests. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect, type Scope } from "effect"
import * as Datasets from "../../../../src/agents/task/Datasets.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import type { TextEnv } from "../../../../src/agents/task/TextEnv.ts"

export type TaskFiles = Readonly<Record<string, string>>

/** A task that needs no container: the answer in a file must be the word in another file. */
export const copying: TaskFiles = {
  "task.toml": `schema_version = "1.2"
[task]
name = "tests/copying"
[metadata]
difficulty = "easy"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 30.0
env = { RIGHT = "/app/data/word.txt" }
[environment]
cpus = 1
`,
  "instruction.md": "Write the word in /app/data/word.txt to /app/answer.txt.\n",
  "environment/Dockerfile": "# A plain image.\nFROM ubuntu:24.04\nWORKDIR /app\nCOPY words/ data/\n",
  "environment/words/word.txt": "heron\n",
  "tests/test.sh": `#!/bin/bash
if [ "$(cat /app/answer.txt)" = "$(cat $RIGHT)" ] && [ "$(cat "/tests/extra.txt")" = "an extra file" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
`,
  "tests/extra.txt": "an extra file",
  "solution/solve.sh": "cp /app/data/word.txt /app/answer.txt\n",
}

/** Makes a folder with tasks, which is removed with the scope. */
export const folderOf = (tasks: Readonly<Record<string, TaskFiles>>): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "harbor-tasks-"))
      for (const [name, files] of Object.entries(tasks)) {
        for (const [path, text] of Object.entries(files)) {
          const file = join(folder, name, path)
          mkdirSync(dirname(file), { recursive: true })
          writeFileSync(file, text)
        }
      }
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )

export const openTasks = (folder: string, more: Readonly<Record<string, unknown>> = {}) =>
  Datasets.open({ type: "harbor", dataset_path: folder, ...more }, { baseDir: "." })

export const begun = (env: TextEnv) => env.begin(stream(1, "env"))
