/**
 * The drawing of the two envs in `control/Lander.ts`: JavaScript that a browser runs to render a craft above its
 * pad with its flames and its path, and that shows whether it could land at its speed. The envs pass it to `scene`
 * (scene.ts), which declares the names that it uses but does not define: helpers such as `clip`, and the env's constants,
 * which are the limits of a landing and `continuous`. If `continuous` is true, an action is the powers of the engines;
 * otherwise it is the index of one engine.
 */
export const lander = String.raw`
const width = 440
const height = 460
const ground = 372
const unit = 200

function engines(action) {
  if (action.length === 0) return [0, 0]
  if (continuous) return [(clip(action[0], -1, 1) + 1) / 2, clip(action[1], -1, 1)]
  return [action[0] === 2 ? 1 : 0, action[0] === 1 ? 1 : action[0] === 3 ? -1 : 0]
}

function draw(stage, [x, y, vx, vy, angle], action) {
  const { context, colours, dark, left, top, right, bottom } = stage
  const { faded, line, dashes, shape, disc, slab, shadow, sky, words, remember, fading } = stage
  const across = (at) => width / 2 + at * unit
  const above = (at) => ground - at * unit
  const [main, side] = engines(action)

  sky(dark ? "#0d1020" : "#d9e4f1", dark ? "#2a2f4c" : "#fbf3e8", ground)
  for (let star = 0; dark && star < 70; star++) {
    const [far, high] = [(star * 0.618034) % 1, (star * 0.754878) % 1]
    faded(0.25 + 0.6 * ((star * 0.3719) % 1), () => disc(left + far * (right - left), top + high * (ground - top), 0.7 + (star % 3) * 0.4, "#fff"))
  }
  faded(dark ? 0.9 : 0.55, () => disc(across(0.68), above(1.38), 27, dark ? "#d8d3c4" : "#f6d9a8"))
  faded(0.12, () => {
    disc(across(0.68) - 8, above(1.38) - 6, 6, "#000")
    disc(across(0.68) + 9, above(1.38) + 4, 4, "#000")
    disc(across(0.68) - 2, above(1.38) + 12, 3, "#000")
  })
  const peaks = Array.from({ length: 41 }, (_, index) => {
    const at = left + ((right - left) * index) / 40
    return [at, ground - 14 - 15 * Math.abs(Math.sin(at * 0.021)) - 12 * Math.abs(Math.sin(at * 0.053 + 1))]
  })
  faded(0.6, () => shape([...peaks, [right, ground], [left, ground]], colours.faint))
  slab(left, ground, right - left, bottom - ground, 0, dark ? "#1b1e2b" : "#dcd6c8")
  line([[left, ground], [right, ground]], dark ? "#4a4f66" : "#b9b19f", 3)
  for (const edge of [-fieldHalf, fieldHalf]) {
    faded(0.5, () => dashes([[across(edge), top], [across(edge), ground]], colours.muted, 1, 6))
  }
  slab(across(-padHalf), ground - 3, 2 * padHalf * unit, 8, 4, colours.goal)
  for (const edge of [-padHalf, padHalf]) {
    line([[across(edge), ground], [across(edge), ground - 34]], colours.ink, 2.5)
    shape([[across(edge), ground - 34], [across(edge) + 17, ground - 28], [across(edge), ground - 22]], colours.goal)
  }

  const low = clip(1 - y, 0, 1)
  faded(low, () => shadow(across(x), ground + 3, 22, 3.5))
  fading(remember(across(x), above(y) - 12, 80), colours.body, 2.5, 0.6)

  context.save()
  context.translate(across(x), above(y))
  context.rotate(-angle)
  if (main > 0) {
    const long = 10 + 30 * main
    faded(0.85, () => shape([[-7, -5], [7, -5], [3, -5 + long * 0.6], [0, -5 + long], [-3, -5 + long * 0.6]], colours.pole))
    shape([[-4, -5], [4, -5], [0, -5 + long * 0.6]], colours.joint)
  }
  if (side !== 0) {
    // The craft is pushed away from the flame.
    const way = -Math.sign(side)
    const long = 8 + 14 * Math.abs(side)
    shape([[way * 10, -23], [way * (10 + long), -19.5], [way * 10, -16]], colours.joint)
  }
  line([[-9, -10], [-17, 0], [-21, 0]], colours.stone, 3)
  line([[9, -10], [17, 0], [21, 0]], colours.stone, 3)
  shape([[-6, -8], [6, -8], [8, -3], [-8, -3]], colours.stone)
  slab(-14, -18, 28, 11, 4, colours.body)
  shape([[-11, -17], [11, -17], [8, -27], [4, -31], [-4, -31], [-8, -27]], colours.body)
  faded(0.18, () => shape([[-11, -17], [-3, -17], [-3, -31], [-4, -31], [-8, -27]], "#fff"))
  disc(0, -22, 5, colours.ink)
  disc(0, -22, 3.6, dark ? "#cfe9ff" : "#bfe0f5")
  context.restore()

  const reading = (index, text, fine) =>
    words(text, left + 18, top + 24 + 20 * index, { colour: fine ? colours.goal : colours.pole, size: 13 })
  reading(0, "down " + short(-vy), -vy <= slowDown)
  reading(1, "across " + short(vx), Math.abs(vx) <= slowAcross)
  reading(2, "tilt " + short((angle * 360) / turn, 0) + "\u00b0", Math.abs(angle) <= upright)
  if (action.length === 0) return
  const burns = [["left", Math.max(side, 0)], ["main", main], ["right", Math.max(-side, 0)]]
  burns.forEach(([name, power], index) => {
    const at = width / 2 + (index - 1) * 92
    slab(at - 38, bottom - 34, 76, 9, 4.5, colours.faint)
    if (power > 0) slab(at - 38, bottom - 34, 9 + 67 * power, 9, 4.5, colours.act)
    words(name, at, bottom - 14, { size: 11, align: "center" })
  })
}
`
