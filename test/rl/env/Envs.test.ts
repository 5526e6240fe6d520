import { assert, describe, it } from "vitest"
import { builtIn, byId } from "../../../src/rl/env/Envs.ts"
import * as BitFlip from "../../../src/rl/env/games/BitFlip.ts"
import * as MemoryChain from "../../../src/rl/env/games/MemoryChain.ts"
import * as RepeatCue from "../../../src/rl/env/games/RepeatCue.ts"
import * as TicTacToe from "../../../src/rl/env/games/TicTacToe.ts"
import * as ApplePicker from "../../../src/rl/env/grid/ApplePicker.ts"
import * as DeepSea from "../../../src/rl/env/grid/DeepSea.ts"
import * as GridWorld from "../../../src/rl/env/grid/GridWorld.ts"
import * as KeyDoor from "../../../src/rl/env/grid/KeyDoor.ts"
import * as PixelMaze from "../../../src/rl/env/grid/PixelMaze.ts"
import * as Asterix from "../../../src/rl/env/pixel/Asterix.ts"
import * as Breakout from "../../../src/rl/env/pixel/Breakout.ts"
import * as Catch from "../../../src/rl/env/pixel/Catch.ts"
import * as Freeway from "../../../src/rl/env/pixel/Freeway.ts"
import * as Seaquest from "../../../src/rl/env/pixel/Seaquest.ts"
import * as SpaceInvaders from "../../../src/rl/env/pixel/SpaceInvaders.ts"
import { envError } from "./errors.ts"

describe("byId", () => {
  it("finds every built-in env by a unique id", () => {
    const ids = builtIn.map((env) => env.id)
    assert.includeMembers(ids, ["CartPole-v1", "Pendulum-v1", "MinAtar/Breakout-v1", "KeyDoor-10x10-3rooms-v0"])
    assert.strictEqual(new Set(ids).size, ids.length)
    for (const env of builtIn) assert.strictEqual(byId(env.id), env)
  })

  it.each([
    ["CartPole", "CartPole-v1"],
    ["cartpole-v0", "CartPole-v1"],
    ["Pendulum-v0", "Pendulum-v1"],
    ["mountaincar", "MountainCar-v0"],
    ["Acrobat-v1", "Acrobot-v1"],
  ])("suggests for %s", (id, suggestion) => {
    assert.strictEqual(envError(() => byId(id)).message, `unknown env "${id}"; did you mean "${suggestion}"?`)
  })

  it("lists all envs if no id is similar", () => {
    assert.include(
      envError(() => byId("Chess")).message,
      'unknown env "Chess"; expected one of CartPole-v1, Pendulum-v1',
    )
  })
})

describe("the options of a built-in env, in code without types", () => {
  const modules = {
    ApplePicker,
    Asterix,
    BitFlip,
    Breakout,
    Catch,
    DeepSea,
    Freeway,
    GridWorld,
    KeyDoor,
    MemoryChain,
    PixelMaze,
    RepeatCue,
    Seaquest,
    SpaceInvaders,
    TicTacToe,
  }

  it.each(Object.entries(modules))("of %s have only keys that it knows", (name, { make }) => {
    const { message } = envError(() => make(JSON.parse('{"unheardOf": 4}')))
    assert.include(message, `${name}.make: unknown option "unheardOf"; its options are `)
  })

  it("suggest the right name of a misspelt key", () => {
    assert.strictEqual(
      envError(() => BitFlip.make(JSON.parse('{"bit": 4}'))).message,
      'BitFlip.make: unknown option "bit"; did you mean "bits"?',
    )
  })
})
