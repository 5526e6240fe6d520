/**
 * Lists the names by which configs and flags choose a backend. It imports nothing, so that commands can show the names
 * at once.
 */
export const backendNames = ["auto", "cpu", "cuda", "webgpu", "wasm", "native", "reference"] as const
export type BackendName = (typeof backendNames)[number]
