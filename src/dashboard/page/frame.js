// The sandboxed side of the player: an origin of its own, in which a run's drawing code sees a canvas and nothing else.
// A module would be fetched with this frame's origin, which nobody knows; a plain script is not.
{
  let ui
  let uiState
  let queue = Promise.resolve()
  let last

  const tell = (message) => parent.postMessage(message, "*")

  const start = async (code) => {
    const canvas = document.querySelector("canvas")
    const ratio = devicePixelRatio || 1
    canvas.width = canvas.clientWidth * ratio
    canvas.height = canvas.clientHeight * ratio
    const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }))
    ui = await import(address)
    uiState = await ui.init(canvas, { devicePixelRatio: ratio })
    tell({ type: "ready" })
  }

  const show = async ({ parameters, state, action, index, begins }) => {
    // Of pictures that came while one was being drawn only the newest is wanted.
    if (last !== index) return
    if (begins && ui.episode_init !== undefined) await ui.episode_init(uiState, parameters)
    await ui.render(uiState, parameters, state, action)
    tell({ type: "drawn", index })
  }

  addEventListener("message", ({ data, source }) => {
    if (source !== parent) return
    if (data.type === "show") last = data.index
    queue = queue
      .then(() => (data.type === "start" ? start(data.code) : data.type === "show" ? show(data) : undefined))
      .catch((error) => tell({ type: "failed", message: String(error) }))
  })
  tell({ type: "loaded" })
}
