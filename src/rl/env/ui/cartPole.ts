/**
 * Draws a cart with its pole on a track. `farthest` is the largest distance from the middle in metres, `steepest` the largest
 * angle in radians.
 */
import type { EnvDrawing, StagePoint } from "./shapes.ts"
import * as pageText from "./pageText.ts"

export const cartPole: EnvDrawing<{ readonly farthest: number; readonly steepest: number }> = {
  width: 600,
  height: 400,
  terminal: { columns: 61, rows: 12, from: [20, 80], to: [580, 310] },
  source: { draw: pageText.cartPole },
  draw: (stage, [x, , angle], [action], values) => {
    const { colours, left, right, bottom, faded, line, shape, disc, slab, letter, caption, turn, short } = stage
    const { shadow, arrow, keys } = stage
    const { farthest, steepest, width } = values
    const floor = 290
    const metre = 104
    const long = 165
    const middle = width / 2 + x * metre
    const hinge = floor - 46
    const away = (lean: number, far: number): StagePoint => [
      middle + far * Math.sin(lean),
      hinge - far * Math.cos(lean),
    ]
    const lost = Math.abs(x) > farthest || Math.abs(angle) > steepest

    slab(left, floor, right - left, bottom - floor, 0, colours.deep)
    line(colours.faint, 3, [left, floor], [right, floor])
    for (let at = -2; at <= 2; at++) {
      const tick = width / 2 + at * metre
      line(at === 0 ? colours.muted : colours.faint, 2, [tick, floor + 8], [tick, floor + (at === 0 ? 20 : 14)])
    }
    for (const side of [-1, 1]) {
      const post = width / 2 + side * farthest * metre
      line(colours.pole, 4, [post, floor - 26], [post, floor])
      disc(post, floor - 30, 5, colours.pole)
    }

    faded(0.1, () => {
      const arc = Array.from({ length: 13 }, (_, index) => away(steepest * (index / 6 - 1), long + 26))
      shape(lost ? colours.pole : colours.goal, [middle, hinge], ...arc)
    })

    shadow(middle, floor + 5, 58, 6)
    if (action !== undefined) {
      const way = action === 1 ? 1 : -1
      arrow(middle + way * 56, hinge + 12, way * 44, 0, colours.act, 8)
    }
    slab(middle - 48, hinge - 8, 96, 40, 11, colours.body)
    faded(0.16, () => slab(middle - 42, hinge - 4, 84, 7, 3.5, "#fff"))
    for (const side of [-1, 1]) {
      const [wheel, axle] = [middle + side * 27, floor - 12]
      disc(wheel, axle, 12, colours.ink)
      disc(wheel, axle, 8, colours.muted)
      for (const spoke of [0, turn / 4]) {
        const spin = (x * metre) / 12 + spoke
        const [across, down] = [7 * Math.cos(spin), 7 * Math.sin(spin)]
        line(colours.ink, 2, [wheel - across, axle - down], [wheel + across, axle + down])
      }
    }

    const pole = lost ? colours.muted : colours.pole
    line(pole, 13, [middle, hinge], away(angle, long))
    faded(0.28, () => line("#fff", 3, away(angle + 0.02, 16), away(angle + 0.002, long - 2)))
    disc(middle, hinge, 10, colours.ink)
    disc(middle, hinge, 6, colours.joint)

    letter("─", [width / 2 - farthest * metre, floor], [width / 2 + farthest * metre, floor])
    letter("•", [middle, hinge], away(angle, long))
    letter("█", [middle - 28, hinge + 24], [middle + 28, hinge + 24])
    caption(`x ${short(x)} m   angle ${short((angle * 360) / turn, 1)}°`)
    keys(width / 2, (floor + bottom) / 2 + 12, action, 38, [-0.55, 0], [0.55, 0])
  },
}
