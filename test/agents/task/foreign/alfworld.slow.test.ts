import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { platform } from "../../../../src/node.ts"
import * as Datasets from "../../../../src/agents/task/Datasets.ts"
import { play, saying } from "../support.ts"

/** Stands for ALFWorld: a game is won by putting the apple into the fridge, and ends after three steps. */
const environment = `
import os
class AlfredTWEnv:
    def __init__(self, config, train_eval):
        assert config["env"]["type"] == "AlfredTWEnv"
        self.train_eval = train_eval
        self.game_files = [f"/data/{train_eval}/{name}/trial_1/game.tw-pddl" for name in ["pick_heat_then_place-Egg", "look_at_obj-Book"]]
        self.num_games = len(self.game_files)
    def init_env(self, batch_size):
        assert batch_size == 1 and len(self.game_files) == 1
        return Env(self.game_files[0])
class Env:
    def __init__(self, file): self.file = file
    def reset(self):
        print("Loading", self.file)
        self.steps = 0
        name = self.file.split("/")[-3]
        return ["-= Welcome =-\\n\\nYou see a fridge.\\n\\nYour task: " + name], {"extra.gamefile": [self.file], "admissible_commands": [["look", "put apple"]]}
    def step(self, actions):
        self.steps += 1
        won = actions == ["put apple"]
        seen = "You arrive at loc 3. On it is nothing." if actions == ["look"] else "OK"
        return (seen,), (1,), (won or self.steps == 3,), {"won": (won,)}
`

let folder = ""
let python = ""
const put = (name: string, text: string): string => {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return path
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "effect-alfworld-"))
  put("lib/alfworld/__init__.py", "")
  put("lib/alfworld/agents/__init__.py", "")
  put("lib/alfworld/agents/environment/__init__.py", environment)
  put("lib/yaml.py", "import json\ndef safe_load(file): return json.load(file)\n")
  python = put("python", `#!/bin/sh\nPYTHONPATH='${join(folder, "lib")}' exec python3 "$@"\n`)
  chmodSync(python, 0o755)
  put("base.yaml", '{ "env": { "type": "AlfredTWEnv" } }')
  put(
    "prompts.json",
    JSON.stringify({ react_examine_1: "First.\n", react_examine_0: "Second.\n", act_heat_0: "Other.\n" }),
  )
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const opened = (more: object = {}) =>
  Datasets.open(
    { type: "alfworld", base_config_path: "base.yaml", num_episodes: null, python, ...more },
    { baseDir: folder },
  )

describe("ALFWorld", () => {
  it.effect("is played by its simulator, each game as a task", () =>
    Effect.gen(function* () {
      const { tasks } = yield* opened({ prompts_path: "prompts.json", split: "train" })
      assert.strictEqual(tasks.size, 2)
      const won = yield* play(yield* tasks.at(0), saying("look", "think: hm", "put apple"))
      assert.strictEqual(
        won.observations[0],
        "Interact with a household to solve a task. Here are two examples.\nFirst.\nSecond.\nYou see a fridge.\nYour task: look_at_obj-Book",
      )
      assert.deepStrictEqual(won.observations.slice(1), ["On it is nothing.", "OK.", "OK"])
      assert.deepStrictEqual([won.score, won.terminated], [1, true])
      const lost = yield* play(yield* tasks.at(1), saying("look", "look", "look"))
      assert.include(lost.observations[0], "Other.\nYou see a fridge.\nYour task: pick_heat_then_place-Egg")
      assert.deepStrictEqual([lost.score, lost.terminated, lost.steps.at(-1)?.truncated], [0, false, true])
    }).pipe(Effect.scoped, Effect.provide(platform)),
  )

  it.effect("says what is missing", () =>
    Effect.gen(function* () {
      const message = (more: object) => Effect.map(Effect.flip(opened(more)), ({ message }) => message)
      assert.include(yield* message({ base_config_path: "none.yaml" }), "base_config_path: there is no file")
      assert.include(yield* message({ num_episodes: 3 }), "num_episodes: the program has 2 tasks, found 3")
      assert.include(yield* message({ python: "python3" }), "python3 -m pip install alfworld")
      put("empty.yaml", "{}")
      assert.include(yield* message({ base_config_path: "empty.yaml" }), "env.type is missing")
    }).pipe(Effect.scoped, Effect.provide(platform)),
  )
})
