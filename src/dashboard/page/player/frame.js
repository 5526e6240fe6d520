// The sandboxed side of the player: an origin of its own, in which a run's drawing code sees a canvas and nothing else.
// A module would be fetched with this frame's origin, which nobody knows; a plain script is not.
{
  let ui
  let uiState
  let queue = Promise.resolve()
  let last
  let begun

  const tell = (message) => parent.postMessage(message, "*")

  const fit = (canvas) => {
    const ratio = devicePixelRatio || 1
    canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio))
    canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio))
    return ratio
  }

  const start = async (code) => {
    const canvas = document.querySelector("canvas")
    const ratio = fit(canvas)
    const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }))
    ui = await import(address)
    uiState = await ui.init(canvas, { devicePixelRatio: ratio })
    tell({ type: "ready" })
    new ResizeObserver(() => {
      const ratio = devicePixelRatio || 1
      if (canvas.width === Math.round(canvas.clientWidth * ratio)) return
      // A new size empties a canvas.
      fit(canvas)
      if (last !== undefined) inTurn(() => show(last))
    }).observe(canvas)
  }

  const show = async (message) => {
    // Of pictures that came while one was being drawn only the newest is wanted.
    if (last?.index !== message.index) return
    const { parameters, state, action, index, episode } = message
    if (begun !== episode && ui.episode_init !== undefined) await ui.episode_init(uiState, parameters)
    begun = episode
    await ui.render(uiState, parameters, state, action)
    tell({ type: "drawn", index })
  }

  const inTurn = (action) => {
    queue = queue.then(action).catch((error) => tell({ type: "failed", message: String(error) }))
  }

  addEventListener("message", ({ data, source }) => {
    // Outside of a sandbox somebody else's page could have this origin's rights by framing it.
    if (source !== parent || self.origin !== "null") return
    if (data.type === "show") {
      last = data
      inTurn(() => show(data))
    } else if (data.type === "start") inTurn(() => start(data.code))
  })
  tell({ type: "loaded" })
}
