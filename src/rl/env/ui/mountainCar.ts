/** Draws a car in its valley, and the flag. If `continuous` is true, an action is a force from −1 to 1. */
import type { EnvDrawing, StagePoint } from "./shapes.ts"
import * as pageText from "./pageText.ts"

export const mountainCar: EnvDrawing<{ readonly lowest: number; readonly goal: number; readonly continuous: boolean }> =
  {
    width: 600,
    height: 420,
    terminal: { columns: 61, rows: 14, from: [20, 50], to: [580, 400] },
    source: { draw: pageText.mountainCar },
    draw: (stage, [position, velocity], [action], values) => {
      const { colours, dark, left, top, right, bottom, faded, within, line, shape, disc, slab, letter, caption } = stage
      const { clip, short, sky, arrow, dial, keys } = stage
      const { lowest, goal, continuous, width } = values
      const unit = 290
      const across = (x: number): number => 39 + (x - lowest) * unit
      const level = (x: number): number => 396 - (0.45 * Math.sin(3 * x) + 0.55) * unit
      const ridge = (heightAt: (x: number) => number) => {
        const points = Array.from({ length: 121 }, (_, index): StagePoint => {
          const x = left + ((right - left) * index) / 120
          return [x, heightAt(lowest + (x - 39) / unit)]
        })
        const corners: ReadonlyArray<StagePoint> = [
          [right, bottom],
          [left, bottom],
        ]
        return { points, land: [...points, ...corners] }
      }

      sky(dark ? "#1b2036" : "#dcecf2", colours.paper, 330)
      faded(dark ? 0.9 : 0.75, () => disc(width * 0.42, Math.max(top + 70, 40), 26, colours.joint))
      if (dark) disc(width * 0.42 + 11, Math.max(top + 70, 40) - 7, 22, "#1d2238")
      faded(0.4, () =>
        shape(colours.faint, ...ridge((x) => 300 - 46 * Math.sin(2.1 * x + 1.2) - 18 * Math.sin(5.3 * x)).land),
      )
      faded(0.7, () =>
        shape(colours.faint, ...ridge((x) => 350 - 30 * Math.sin(3.1 * x + 3.6) - 12 * Math.sin(7 * x + 1)).land),
      )

      const hill = ridge(level)
      shape(dark ? "#232a3c" : "#cfd8c4", ...hill.land)
      line(dark ? "#5d7a6c" : "#7d9a75", 6, ...hill.points)

      // The slope on the left, which the car cannot leave.
      const wall: StagePoint = [across(lowest) - 22, level(lowest)]
      line(colours.stone, 8, [wall[0], wall[1] - 24], [wall[0], wall[1] + 8])

      const flag: StagePoint = [across(goal), level(goal)]
      line(colours.ink, 4, flag, [flag[0], flag[1] - 62])
      shape(colours.goal, [flag[0], flag[1] - 62], [flag[0] + 36, flag[1] - 51], [flag[0], flag[1] - 40])

      const push = action === undefined ? 0 : continuous ? clip(action, -1, 1) : action - 1
      within(across(position), level(position), -Math.atan(1.35 * Math.cos(3 * position)), 1, () => {
        faded(dark ? 0.4 : 0.16, () => slab(-30, -3, 60, 6, 3, "#000"))
        arrow(Math.sign(push) * 36, -20, push * 46, 0, colours.act, 7)
        shape(colours.body, [-13, -28], [-7, -41], [9, -41], [18, -28])
        shape(dark ? "#cfe3ff" : "#e8f1fb", [-9, -29], [-5, -37], [7, -37], [13, -29])
        slab(-30, -30, 60, 18, 8, colours.body)
        faded(0.2, () => slab(-25, -28, 50, 4, 2, "#fff"))
        disc(27, -22, 3.5, colours.joint)
        for (const axle of [-17, 17]) {
          const spin = (position * unit) / 9
          disc(axle, -9, 9, colours.ink)
          disc(axle, -9, 4, colours.muted)
          const [along, down] = [7 * Math.cos(spin), 7 * Math.sin(spin)]
          line(colours.muted, 2, [axle - along, -9 - down], [axle + along, -9 + down])
        }
      })

      letter("·", ...hill.points)
      letter("⚑", [flag[0], flag[1] - 40])
      letter("●", [across(position), level(position) - 20])
      caption(`position ${short(position)}   speed ${short(velocity, 3)}`)
      if (action === undefined) return
      if (continuous) dial(width / 2, bottom - 26, 220, push)
      else keys(width / 2, bottom - 30, action, 34, [-1, 0], [0, 0], [1, 0])
    },
  }
