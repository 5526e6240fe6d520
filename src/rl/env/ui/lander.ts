/**
 * Draws a craft above its pad with its flames and its path, and shows whether it could land at its speed. If `continuous` is
 * true, an action is the powers of the engines; otherwise it is the index of one engine.
 */
import type { EnvDrawing, StagePoint } from "./shapes.ts"
import * as pageText from "./pageText.ts"

export const lander: EnvDrawing<{
  readonly padHalf: number
  readonly fieldHalf: number
  readonly slowDown: number
  readonly slowAcross: number
  readonly upright: number
  readonly continuous: boolean
}> = {
  width: 440,
  height: 460,
  terminal: { columns: 61, rows: 20, from: [10, 20], to: [430, 380] },
  source: { draw: pageText.lander },
  // oxlint-disable-next-line max-lines-per-function -- the page gets its text, whole
  draw: (stage, [x, y, vx, vy, angle], action, values) => {
    const { colours, dark, left, top, right, bottom, faded, within, line, shape, disc, slab, words, letter } = stage
    const { caption, turn, clip, short, dashes, shadow, sky, remember, fading } = stage
    const { padHalf, fieldHalf, slowDown, slowAcross, upright, continuous, width } = values
    const ground = 372
    const unit = 200
    const engines = (): StagePoint => {
      if (action.length === 0) return [0, 0]
      if (continuous) return [(clip(action[0], -1, 1) + 1) / 2, clip(action[1], -1, 1)]
      return [action[0] === 2 ? 1 : 0, action[0] === 1 ? 1 : action[0] === 3 ? -1 : 0]
    }
    const across = (at: number): number => width / 2 + at * unit
    const above = (at: number): number => ground - at * unit
    const [main, side] = engines()

    sky(dark ? "#0d1020" : "#d9e4f1", dark ? "#2a2f4c" : "#fbf3e8", ground)
    for (let star = 0; dark && star < 70; star++) {
      const [far, high] = [(star * 0.618034) % 1, (star * 0.754878) % 1]
      faded(0.25 + 0.6 * ((star * 0.3719) % 1), () =>
        disc(left + far * (right - left), top + high * (ground - top), 0.7 + (star % 3) * 0.4, "#fff"),
      )
    }
    faded(dark ? 0.9 : 0.55, () => disc(across(0.68), above(1.38), 27, dark ? "#d8d3c4" : "#f6d9a8"))
    faded(0.12, () => {
      disc(across(0.68) - 8, above(1.38) - 6, 6, "#000")
      disc(across(0.68) + 9, above(1.38) + 4, 4, "#000")
      disc(across(0.68) - 2, above(1.38) + 12, 3, "#000")
    })
    const peaks = Array.from({ length: 41 }, (_, index): StagePoint => {
      const at = left + ((right - left) * index) / 40
      return [at, ground - 14 - 15 * Math.abs(Math.sin(at * 0.021)) - 12 * Math.abs(Math.sin(at * 0.053 + 1))]
    })
    faded(0.6, () => shape(colours.faint, ...peaks, [right, ground], [left, ground]))
    slab(left, ground, right - left, bottom - ground, 0, dark ? "#1b1e2b" : "#dcd6c8")
    line(dark ? "#4a4f66" : "#b9b19f", 3, [left, ground], [right, ground])
    for (const edge of [-fieldHalf, fieldHalf]) {
      faded(0.5, () => dashes([across(edge), top], [across(edge), ground], colours.muted, 1, 6))
    }
    slab(across(-padHalf), ground - 3, 2 * padHalf * unit, 8, 4, colours.goal)
    for (const edge of [-padHalf, padHalf]) {
      line(colours.ink, 2.5, [across(edge), ground], [across(edge), ground - 34])
      shape(colours.goal, [across(edge), ground - 34], [across(edge) + 17, ground - 28], [across(edge), ground - 22])
    }

    const low = clip(1 - y, 0, 1)
    faded(low, () => shadow(across(x), ground + 3, 22, 3.5))
    fading(remember(across(x), above(y) - 12, 80), colours.body, 2.5, 0.6)

    within(across(x), above(y), -angle, 1, () => {
      if (main > 0) {
        const long = 10 + 30 * main
        faded(0.85, () =>
          shape(colours.pole, [-7, -5], [7, -5], [3, -5 + long * 0.6], [0, -5 + long], [-3, -5 + long * 0.6]),
        )
        shape(colours.joint, [-4, -5], [4, -5], [0, -5 + long * 0.6])
      }
      if (side !== 0) {
        // The craft is pushed away from the flame.
        const way = -Math.sign(side)
        const long = 8 + 14 * Math.abs(side)
        shape(colours.joint, [way * 10, -23], [way * (10 + long), -19.5], [way * 10, -16])
      }
      line(colours.stone, 3, [-9, -10], [-17, 0], [-21, 0])
      line(colours.stone, 3, [9, -10], [17, 0], [21, 0])
      shape(colours.stone, [-6, -8], [6, -8], [8, -3], [-8, -3])
      slab(-14, -18, 28, 11, 4, colours.body)
      shape(colours.body, [-11, -17], [11, -17], [8, -27], [4, -31], [-4, -31], [-8, -27])
      faded(0.18, () => shape("#fff", [-11, -17], [-3, -17], [-3, -31], [-4, -31], [-8, -27]))
      disc(0, -22, 5, colours.ink)
      disc(0, -22, 3.6, dark ? "#cfe9ff" : "#bfe0f5")
    })

    const reading = (row: number, text: string, isFine: boolean): void =>
      caption(text, row, { colour: isFine ? colours.goal : colours.pole, size: 13 })
    reading(0, `down ${short(-vy)}`, -vy <= slowDown)
    reading(1, `across ${short(vx)}`, Math.abs(vx) <= slowAcross)
    reading(2, `tilt ${short((angle * 360) / turn, 0)}°`, Math.abs(angle) <= upright)
    letter("─", [across(-1), ground], [across(1), ground])
    for (const edge of [-padHalf, padHalf]) letter("⚑", [across(edge), ground - 12])
    const leaning = angle > upright ? "\\" : "/"
    letter(Math.abs(angle) <= upright ? "A" : leaning, [across(x), above(y)])
    if (action.length === 0) return
    const burns: ReadonlyArray<readonly [name: string, power: number]> = [
      ["left", Math.max(side, 0)],
      ["main", main],
      ["right", Math.max(-side, 0)],
    ]
    burns.forEach(([name, power], index) => {
      const at = width / 2 + (index - 1) * 92
      slab(at - 38, bottom - 34, 76, 9, 4.5, colours.faint)
      if (power > 0) slab(at - 38, bottom - 34, 9 + 67 * power, 9, 4.5, colours.act)
      words(name, at, bottom - 14, { size: 11, align: "center" })
    })
  },
}
