/** Draws a mass on its line, and below it the same state as a point in the plane of position and speed. */
import type { EnvDrawing, StagePoint } from "./shapes.ts"
import * as pageText from "./pageText.ts"

export const doubleIntegrator: EnvDrawing<{
  readonly farthest: number
  readonly fastest: number
  readonly strongest: number
}> = {
  width: 480,
  height: 500,
  terminal: { columns: 51, rows: 5, from: [20, 40], to: [460, 130] },
  source: { draw: pageText.doubleIntegrator },
  draw: (stage, [position, velocity], [action], values) => {
    const { colours, left, right, bottom, faded, line, disc, ring, slab, words, letter, caption, clip, short } = stage
    const { shadow, arrow, dial, remember, fading } = stage
    const { farthest, fastest, strongest, width } = values
    const half = 190
    const force = clip((action ?? 0) / strongest, -1, 1)
    const path = remember(position, velocity, 100)
    // Choose the scale so that the whole path fits.
    const needed = Math.max(...path.flat().map(Math.abs))
    const span = [1.25, 2.5].find((wide) => needed <= wide) ?? Math.max(farthest, fastest)
    const unit = half / span
    const middle = width / 2
    const across = (x: number): number => middle + x * unit

    const rail = 112
    slab(left, rail, right - left, 6, 0, colours.faint)
    for (let tick = -4; tick <= 4; tick++) {
      const mark = across((tick * span) / 5)
      line(tick === 0 ? colours.goal : colours.faint, 3, [mark, rail + 12], [mark, rail + 17])
    }
    faded(0.16, () => slab(middle - 24, rail - 44, 48, 44, 10, colours.goal))
    shadow(across(position), rail + 2, 24, 4)
    arrow(across(position) + Math.sign(force) * 26, rail - 21, force * 52, 0, colours.act, 7)
    slab(across(position) - 20, rail - 41, 40, 40, 9, colours.body)
    faded(0.18, () => slab(across(position) - 15, rail - 37, 30, 6, 3, "#fff"))

    const plane = 290
    const at = ([x, v]: StagePoint): StagePoint => [across(x), plane - (v * unit * 138) / half]
    for (let tick = -4; tick <= 4; tick++) {
      const share = (tick * span) / 5
      line(colours.faint, tick === 0 ? 2.5 : 1, at([share, -span]), at([share, span]))
      line(colours.faint, tick === 0 ? 2.5 : 1, at([-span, share]), at([span, share]))
    }
    words("speed", middle + 8, plane - 130, { size: 12 })
    words("position", middle + half, plane + 14, { size: 12, align: "right" })
    words(`±${span}`, middle - half, plane + 14, { size: 12 })
    ring(middle, plane, 14, colours.goal, 3)
    ring(middle, plane, 7, colours.goal, 2)
    fading(path.map(at), colours.pole, 3.5, 0.9)
    const [pointX, pointY] = at([position, velocity])
    disc(pointX, pointY, 9, colours.pole)
    faded(0.3, () => disc(pointX - 2.5, pointY - 2.5, 2.5, "#fff"))

    letter("─", [middle - half, rail], [middle + half, rail])
    letter("┴", [middle, rail])
    letter("■", [across(position), rail - 21])
    caption(`position ${short(position)}   speed ${short(velocity)}`)
    if (action !== undefined) dial(middle, bottom - 28, 220, force)
  },
}
