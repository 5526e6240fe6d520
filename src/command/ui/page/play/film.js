/**
 * Plays the moments of a simulated body in real time, as smoothly as the screen can: in each of its frames, the newest moment
 * that is due. A step of the env has several moments.
 */

/** The longest time between two frames that counts, in seconds; a hidden tab has none for long. */
const longest = 0.1

/**
 * Makes a film without moments. `show` is called with the moment to draw and its step, `begun` with each step whose first
 * moment is due, `ended` with each step whose last moment was shown, and `wanted` when the next step should be computed.
 */
export const makeFilm = (calls) => {
  const film = { calls, frame: undefined, before: undefined, queue: [], due: 0, last: undefined }
  return {
    add: (step) => {
      const { moments, seconds } = step
      film.queue.push(
        ...moments.map((moment, index) => ({ moment, step, seconds, index, isLast: index === moments.length - 1 })),
      )
    },
    /** Draws the last moment again. */
    again: () => film.last !== undefined && calls.show(film.last),
    /** Shows the last moment for longer. */
    wait: (seconds) => (film.due = -seconds),
    clear: () => Object.assign(film, { queue: [], due: 0, last: undefined }),
    run: () => {
      film.before = undefined
      film.frame ??= requestAnimationFrame((now) => tick(film, now))
    },
    stop: () => {
      cancelAnimationFrame(film.frame)
      film.frame = undefined
    },
  }
}

const tick = (film, now) => {
  const { calls, queue } = film
  film.frame = requestAnimationFrame((next) => tick(film, next))
  film.due += Math.min(longest, (now - (film.before ?? now)) / 1000)
  film.before = now
  let shown
  let ended
  while (queue.length > 0 && film.due >= queue[0].seconds) {
    shown = queue.shift()
    film.due -= shown.seconds
    if (shown.index === 0) calls.begun(shown.step)
    if (shown.isLast) ended = shown.step
  }
  // If the next step is not there in time, its moments must not follow faster.
  if (queue.length === 0) film.due = Math.min(film.due, 0)
  if (shown !== undefined) {
    film.last = shown
    calls.show(shown)
  }
  if (ended !== undefined) calls.ended(ended)
  // One step is computed while the one before is shown.
  if (queue.length <= (film.last?.step.moments.length ?? 0)) calls.wanted()
}
