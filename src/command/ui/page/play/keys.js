/** Defines how a person acts in an env with the arrow keys and the key F, which fires, or with buttons for the same. */

/** Returns the function that converts the held arrow keys to an action. `arrows` has the arrows of all actions, in order. */
const byArrows = (arrows) => {
  const directions = Array.from(arrows, (arrow) => {
    const at = "↖↑↗←·→↙↓↘".indexOf(arrow)
    return `${(at % 3) - 1},${Math.floor(at / 3) - 1}`
  })
  return ({ left, right, up, down }) => {
    const index = directions.indexOf(`${Number(right) - Number(left)},${Number(down) - Number(up)}`)
    return index < 0 ? undefined : [index]
  }
}

/** Converts held keys to one of MinAtar's actions, of which `set` has a game's: the key to fire comes first, then ← and →. */
const byGame = (set) => (held) => {
  const wanted = [
    [held.fire, "✦"],
    [held.left !== held.right, held.left ? "←" : "→"],
    [held.up !== held.down, held.up ? "↑" : "↓"],
  ]
  const sign = wanted.find(([isHeld, sign]) => isHeld && set.includes(sign))?.[1] ?? "·"
  return [Array.from(set).indexOf(sign)]
}

const everywhere = ["left", "right", "up", "down"]
const steer = "← and → push."
const walk = "The arrows walk; nothing moves until you do."

/**
 * The envs in which a person can act, by the beginning of their ids. `choose` returns the action, or undefined for a turn
 * without one. Its arguments are the held keys, the number of the step, and `push`, from −1 to 1, which is how far the
 * keys or the slider push to the right. In an env with `turns`, a step happens only when a key is pressed.
 */
const envs = [
  [
    "CartPole",
    {
      hint: `${steer} Without either, the pushes alternate.`,
      choose: ({ left, right }, step) => [left === right ? step % 2 : right ? 1 : 0],
    },
  ],
  ["Pendulum", { hint: `${steer} So does the slider.`, choose: (_held, _step, push) => [-2 * push] }],
  ["MountainCarContinuous", { hint: `${steer} So does the slider.`, choose: (_held, _step, push) => [push] }],
  ["MountainCar", { hint: steer, choose: byArrows("←·→") }],
  ["Acrobot", { hint: steer, choose: byArrows("←·→") }],
  ["Catch", { hint: steer, choose: byArrows("←·→") }],
  ["MinAtar/Breakout-v1", { hint: steer, choose: byArrows("·←→") }],
  ["MinAtar/Asterix-v1", { keys: everywhere, hint: "The arrows walk.", choose: byGame("·←↑→↓") }],
  ["MinAtar/Freeway-v1", { keys: ["up", "down"], hint: "↑ and ↓ walk.", choose: byGame("·↑↓") }],
  [
    "MinAtar/SpaceInvaders-v1",
    { keys: ["left", "right", "fire"], hint: "← and → steer, F fires.", choose: byGame("·←→✦") },
  ],
  // Seaquest, and the games with all of MinAtar's actions.
  ["MinAtar/", { keys: [...everywhere, "fire"], hint: "The arrows steer, F fires.", choose: byGame("·←↑→↓✦") }],
  ["GridWorld", { turns: true, hint: `${walk} Two at once go diagonally.`, choose: byArrows("↑↗→↘↓↙←↖") }],
  ["KeyDoor", { turns: true, hint: walk, choose: byArrows("↑↓←→") }],
  ["ApplePicker", { turns: true, hint: walk, choose: byArrows("↑↓←→") }],
  ["PixelMaze", { turns: true, hint: walk, choose: byArrows("↑↓←→") }],
]

/** Returns the keys with which a person acts: the arrows and, if there is something to fire, "fire". */
export const padOf = ({ turns, keys }) => keys ?? (turns === true ? everywhere : ["left", "right"])

/** Returns how a person acts in an env; undefined if only policies can. */
export const keysOf = (env) => envs.find(([start]) => env.startsWith(start))?.[1]
