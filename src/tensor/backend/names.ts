/** The names by which configs and flags choose a backend. It imports nothing, so that a command can name them at once. */
export const backendNames = ["auto", "cpu", "cuda", "webgpu", "wasm", "reference"] as const
export type BackendName = (typeof backendNames)[number]
