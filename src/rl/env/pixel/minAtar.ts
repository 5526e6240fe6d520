/**
 * Makes envs of MinAtar's games (Young and Tian 2019, arXiv:1903.03176) from their rules. It holds what the games share: a
 * board of 10 × 10, six actions, and the repetition of the last action.
 */
import * as Schema from "effect/Schema"
import { fraction } from "../../../base/config/fields.ts"
import { EnvError } from "../../../base/EnvError.ts"
import * as G from "../../../tensor/graph/ops.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { GraphTransition } from "../EnvGraph.ts"
import { boardEnv, type BoardEnv, type BoardGame, sticky } from "../internal/board.ts"
import { boardPictures } from "../ui/board.ts"
import type { BoardGame as BoardLook } from "../ui/board.ts"

/** The number of rows and of columns of every game's board. */
export const side = 10
export const places = side * side

/** MinAtar's six actions, by its numbers. */
export const actions = { nothing: 0, left: 1, up: 2, right: 3, down: 4, fire: 5 } as const
type Action = keyof typeof actions

/** The keys that drawings show for the actions. */
const keys: Readonly<Record<Action, string>> = { nothing: "·", left: "←", up: "↑", right: "→", down: "↓", fire: "✦" }

/** The options of the games whose difficulty is always the same. */
export const MinAtarOptions = Schema.Struct({
  /** The probability that the last action is repeated. Default: 0.1. */
  stickyActionProb: Schema.optionalKey(fraction),
  /** Whether the actions are those that do something in this game, instead of all six of MinAtar. Default: true. */
  useMinimalActionSet: Schema.optionalKey(Schema.Boolean),
})
export type MinAtarOptions = typeof MinAtarOptions.Type

/** The options of the games that become harder. */
export const RampedOptions = Schema.Struct({
  ...MinAtarOptions.fields,
  /** Whether the game becomes harder with time or success. Default: true. */
  difficultyRamping: Schema.optionalKey(Schema.Boolean),
})
export type RampedOptions = typeof RampedOptions.Type

interface MinAtarGame extends Pick<BoardGame, "planes"> {
  readonly name: string
  readonly stateSize: number
  /** The offset of the last action in a state. */
  readonly lastAction: number
  /** The actions that do something in this game, in MinAtar's order. */
  readonly minimalActions: ReadonlyArray<Action>
  readonly look: BoardLook
  readonly reset: BoardGame["rules"]["reset"]
  readonly show: BoardGame["rules"]["show"]
  /** Makes a move, whose action is one of MinAtar's six numbers. */
  readonly step: BoardGame["rules"]["step"]
  /** The graph form of a game that draws no random numbers after its start; its actions are MinAtar's numbers, too. */
  readonly graph?: BoardGame["graph"]
}

/** Makes the env of a game. Its id ends in `-v1`, or in `-v0` with all six actions, as in MinAtar's wrapper for Gymnasium. */
export const minAtarEnv = (game: MinAtarGame, options: RampedOptions): BoardEnv => {
  const { name, planes, stateSize, lastAction, minimalActions, look, reset, show, graph } = game
  const { stickyActionProb = 0.1, useMinimalActionSet = true } = options
  const id = `MinAtar/${name}-v${useMinimalActionSet ? 1 : 0}`
  if (!(stickyActionProb >= 0 && stickyActionProb <= 1)) {
    throw new EnvError({ env: id, message: `${name}: stickyActionProb ${stickyActionProb}; it must be from 0 to 1` })
  }
  const allActions: ReadonlyArray<Action> = ["nothing", "left", "up", "right", "down", "fire"]
  const actionSet = useMinimalActionSet ? minimalActions : allActions
  const numbers = Int32Array.from(actionSet, (action) => actions[action])
  return boardEnv({
    id,
    recipe: { name, options },
    planes,
    size: side,
    actions: actionSet.length,
    ...boardPictures(id, side, look, { moves: actionSet.map((action) => keys[action]).join("") }),
    rules: {
      stateSize,
      reset,
      show,
      step: (state, at, action, random) =>
        game.step(state, at, numbers[sticky(state, at + lastAction, action, stickyActionProb, random)], random),
    },
    // The repetition of an action draws a random number in each step, which a graph form cannot.
    ...(graph === undefined || stickyActionProb > 0 ? {} : { graph: () => withActions(graph(), numbers, lastAction) }),
  })
}

export type GraphForm = ReturnType<NonNullable<BoardGame["graph"]>>

/** Returns the form whose actions are the places in an action set. It also keeps the last action, as the env does. */
const withActions = (form: GraphForm, numbers: Int32Array, lastAction: number): GraphForm => ({
  ...form,
  step: (state, action): GraphTransition => {
    const moved = form.step(state, G.gather(G.constant(numbers), action))
    return { ...moved, state: withNumber(moved.state, lastAction, G.cast(action, "f32")) }
  },
})

/** Returns states [N, size] with other numbers [N] at one place. */
const withNumber = (state: Tensor, at: number, value: Tensor): Tensor => {
  const [count, size] = state.shape
  const after = at + 1
  return G.concat(
    [
      G.slice(state, [0, 0], [count, at]),
      G.expandDims(value, 1),
      ...(after < size ? [G.slice(state, [0, after], [count, size - after])] : []),
    ],
    1,
  )
}

/** Returns the board of each state that begins at an offset: [N, size] → [N, places]. */
export const boardOf = (state: Tensor, from: number, cells = places): Tensor =>
  G.slice(state, [0, from], [state.shape[0], cells])

/** Draws true or false, each half of the time. */
export const coin = (random: Stream): boolean => random.uniformDouble() < 0.5

/** Returns a coordinate that is moved by `by`, from `least` to `most`. */
export const moved = (coordinate: number, by: number, least = 0, most = side - 1): number =>
  Math.min(Math.max(coordinate + by, least), most)

export const isOnBoard = (coordinate: number): boolean => coordinate >= 0 && coordinate < side
