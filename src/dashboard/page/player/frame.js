// Renders steps of an episode in the player's sandboxed frame, by the run's own `ui.esm.js`. `player.js` sends the code
// and the steps as messages. The frame has an origin of its own, so the run's code reaches only a canvas. This is a
// classic script: the browser would refuse to load a module for such a frame.
{
  let ui
  let uiState
  let queue = Promise.resolve()
  let last
  let shownEpisode

  const send = (message) => parent.postMessage(message, "*")

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
    send({ type: "ready" })
    new ResizeObserver(() => {
      const ratio = devicePixelRatio || 1
      if (canvas.width === Math.round(canvas.clientWidth * ratio)) return
      // A change of its size clears the canvas, so render the last step again.
      fit(canvas)
      if (last !== undefined) inTurn(() => show(last))
    }).observe(canvas)
  }

  const show = async (message) => {
    // Skip this step if a newer one has arrived.
    if (last?.index !== message.index) return
    const { parameters, state, action, index, episode } = message
    if (shownEpisode !== episode && ui.episode_init !== undefined) await ui.episode_init(uiState, parameters)
    shownEpisode = episode
    await ui.render(uiState, parameters, state, action)
    send({ type: "drawn", index })
  }

  const inTurn = (action) => {
    queue = queue.then(action).catch((error) => send({ type: "failed", message: String(error) }))
  }

  addEventListener("message", ({ data, source }) => {
    // Outside of a sandbox, this code would run with the rights of the page's origin, and any page could frame it.
    if (source !== parent || self.origin !== "null") return
    if (data.type === "show") {
      last = data
      inTurn(() => show(data))
    } else if (data.type === "start") inTurn(() => start(data.code))
  })
  send({ type: "loaded" })
}
