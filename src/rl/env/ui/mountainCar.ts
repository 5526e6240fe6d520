/**
 * The JavaScript for `scene` that renders a car in its valley, and the flag. Its constants are the positions `lowest`,
 * `highest` and `goal`, and `continuous`: true if an action is a force from −1 to 1, false if it is the index of left,
 * none or right.
 */
export const mountainCar = String.raw`
const width = 600
const height = 420
const unit = 290

function draw(stage, [position, velocity], [action]) {
  const { context, colours, dark, left, top, right, bottom } = stage
  const { faded, line, shape, disc, slab, sky, arrow, caption, dial, keys } = stage
  const across = (x) => 39 + (x - lowest) * unit
  const level = (x) => 396 - (0.45 * Math.sin(3 * x) + 0.55) * unit
  const ridge = (heightAt) => {
    const points = Array.from({ length: 121 }, (_, index) => {
      const x = left + ((right - left) * index) / 120
      return [x, heightAt(lowest + (x - 39) / unit)]
    })
    return { points, land: [...points, [right, bottom], [left, bottom]] }
  }

  sky(dark ? "#1b2036" : "#dcecf2", colours.paper, 330)
  faded(dark ? 0.9 : 0.75, () => disc(width * 0.42, Math.max(top + 70, 40), 26, colours.joint))
  if (dark) disc(width * 0.42 + 11, Math.max(top + 70, 40) - 7, 22, "#1d2238")
  faded(0.4, () => shape(ridge((x) => 300 - 46 * Math.sin(2.1 * x + 1.2) - 18 * Math.sin(5.3 * x)).land, colours.faint))
  faded(0.7, () => shape(ridge((x) => 350 - 30 * Math.sin(3.1 * x + 3.6) - 12 * Math.sin(7 * x + 1)).land, colours.faint))

  const hill = ridge(level)
  shape(hill.land, dark ? "#232a3c" : "#cfd8c4")
  line(hill.points, dark ? "#5d7a6c" : "#7d9a75", 6)

  // The slope on the left, which the car cannot leave.
  const wall = [across(lowest) - 22, level(lowest)]
  line([[wall[0], wall[1] - 24], [wall[0], wall[1] + 8]], colours.stone, 8)

  const flag = [across(goal), level(goal)]
  line([flag, [flag[0], flag[1] - 62]], colours.ink, 4)
  shape([[flag[0], flag[1] - 62], [flag[0] + 36, flag[1] - 51], [flag[0], flag[1] - 40]], colours.goal)

  const push = action === undefined ? 0 : continuous ? clip(action, -1, 1) : action - 1
  context.save()
  context.translate(across(position), level(position))
  context.rotate(-Math.atan(1.35 * Math.cos(3 * position)))
  faded(dark ? 0.4 : 0.16, () => slab(-30, -3, 60, 6, 3, "#000"))
  arrow(Math.sign(push) * 36, -20, push * 46, 0, colours.act, 7)
  shape([[-13, -28], [-7, -41], [9, -41], [18, -28]], colours.body)
  shape([[-9, -29], [-5, -37], [7, -37], [13, -29]], dark ? "#cfe3ff" : "#e8f1fb")
  slab(-30, -30, 60, 18, 8, colours.body)
  faded(0.2, () => slab(-25, -28, 50, 4, 2, "#fff"))
  disc(27, -22, 3.5, colours.joint)
  for (const axle of [-17, 17]) {
    const spin = (position * unit) / 9
    disc(axle, -9, 9, colours.ink)
    disc(axle, -9, 4, colours.muted)
    const [along, down] = [7 * Math.cos(spin), 7 * Math.sin(spin)]
    line([[axle - along, -9 - down], [axle + along, -9 + down]], colours.muted, 2)
  }
  context.restore()

  caption("position " + short(position) + "   speed " + short(velocity, 3))
  if (action === undefined) return
  if (continuous) dial(width / 2, bottom - 26, 220, push)
  else keys(width / 2, bottom - 30, [[-1, 0], [0, 0], [1, 0]], action, 34)
}
`
