import { readFileSync } from "node:fs"
import { gunzipSync } from "node:zlib"
import { assert, describe, it } from "vitest"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { check } from "../../../../src/rl/env/check.ts"
import type { BoardEnv } from "../../../../src/rl/env/internal/board.ts"
import * as boards from "../../../../src/rl/env/ui/minAtarBoards.ts"
import { envError } from "../errors.ts"
import { follow, games } from "./minAtarTrace.ts"

const traceOf = (game: string): string =>
  gunzipSync(readFileSync(new URL(`../data/minatar/${game}.txt.gz`, import.meta.url))).toString()

const looks: Readonly<Record<string, (typeof boards)["asterix"]["look"]>> = {
  asterix: boards.asterix.look,
  breakout: boards.breakout.look,
  freeway: boards.freeway.look,
  seaquest: boards.seaquest.look,
  space_invaders: boards.spaceInvaders.look,
}

/** The kinds of pieces, in the order of the planes that show them; an empty text for a plane of trails and the like. */
const kinds: Readonly<Record<string, ReadonlyArray<string>>> = {
  asterix: ["agent", "enemy", "", "gold"],
  breakout: ["paddle", "ball", "trail", "brick"],
  freeway: ["chicken", "car"],
  seaquest: ["sub", "", "bullet", "", "enemyBullet", "fish", "enemySub", "air", "saved", "diver"],
  space_invaders: ["cannon", "alien", "", "", "bullet", "enemyBullet"],
}

/** Compares the pieces of a state's drawing with the planes of its observation. */
const checkPieces = (game: string, env: BoardEnv, state: Int32Array): void => {
  const seen = env.observe(state)
  const toPiece = (kind: string, place: number) => [kind, Math.floor(place / 10), place % 10] as const
  const { pieces } = looks[game]([...state], { rows: 10, columns: 10, turns: false }, toPiece)
  for (const [plane, kind] of kinds[game].entries()) {
    if (kind === "") continue
    const drawn = pieces.filter(([each]) => each === kind).map(([, row, column]) => 10 * row + column)
    const marked = Array.from({ length: 100 }, (_, cell) => cell).filter((cell) => seen[100 * plane + cell] === 1)
    assert.deepStrictEqual(
      [...new Set(drawn)].toSorted((a, b) => a - b),
      marked,
      `${game}: ${kind}`,
    )
  }
}

/** The offset of the level of difficulty in a state, and the level that careful actions must reach. */
const levels: Readonly<Record<string, readonly [offset: number, least: number]>> = {
  asterix: [9, 5],
  seaquest: [13, 19],
  space_invaders: [8, 1],
}
/** The offset of the number of divers on board in a state of Seaquest; it is −1 after the submarine gave up six. */
const aboard = 6

describe("MinAtar's games", () => {
  it("seaquest: a state with more air and divers than there can be marks and draws no other cells", () => {
    const env = games.seaquest.make()
    const state = new Int32Array(env.reset(stream(1)).length)
    state.fill(5000, 5, 8)
    const seen = Float32Array.from(env.observe(state))
    const marked = Array.from(
      { length: 10 },
      (_, plane) => seen.subarray(100 * plane, 100 * (plane + 1)).indexOf(1) >= 0,
    )
    assert.deepStrictEqual(marked, [true, true, false, false, false, false, false, true, true, false])
    state.fill(5000)
    const toPiece = (kind: string) => [kind, 0, 0] as const
    assert.isBelow(looks.seaquest([...state], { rows: 10, columns: 10, turns: false }, toPiece).pieces.length, 300)
  })

  for (const game of Object.keys(games)) {
    it(`${game}: equals MinAtar's own, by random and by careful actions, and is drawn as it is`, () => {
      const env = games[game].make()
      const [offset, least] = levels[game] ?? [0, 0]
      const reached = { random: 0, careful: 0, plain: 0, fewest: 0 }
      let states = 0
      const [random, careful, plain] = follow(game, traceOf(game), (state, policy) => {
        if (policy === "random" || policy === "careful" || policy === "plain")
          reached[policy] = Math.max(reached[policy], offset === 0 ? 0 : state[offset])
        if (game === "seaquest") reached.fewest = Math.min(reached.fewest, state[aboard])
        if (states++ % 40 === 0) checkPieces(game, env, state)
      })
      assert.strictEqual(random.steps, 10_000)
      assert.isAbove(careful.reward, 10)
      assert.isAbove(plain.reward, 10)
      assert.isAtLeast(reached.careful, least)
      assert.strictEqual(reached.plain, 0)
      if (game === "seaquest") assert.isBelow(reached.fewest, 0)
    })

    it(`${game}: keeps the rules of envs with all of MinAtar's actions`, () => {
      const env = games[game].make({ useMinimalActionSet: false, stickyActionProb: 0.5 })
      assert.match(env.id, /^MinAtar\/\w+-v0$/)
      assert.strictEqual(env.actionSpace.n, 6)
      assert.deepStrictEqual(check(env, { steps: 60 }), [])
    })
  }

  it("refuse a probability that is none", () => {
    assert.strictEqual(
      envError(() => games.asterix.make({ stickyActionProb: 1.5 })).message,
      "Asterix: stickyActionProb 1.5; it must be from 0 to 1",
    )
  })
})
