/** Names the scripts from which the web worker of the page "Play" loads MuJoCo, in the folder of the worker. */

/** Starts the module, whose WebAssembly it contains, because the worker may not use the network. */
export const mujocoScript = "mujoco.js"

/** The package's own script. */
export const mujocoModule = "mujocoModule.js"

/** The licence of both, which goes with every copy. */
export const mujocoLicence = "mujocoLicence.txt"

/** Returns the text of `mujocoScript`. `wasm` is the WebAssembly in base64. */
export const mujocoStart = (wasm: string): string => `import load from "./${mujocoModule}"
const bytes = Uint8Array.from(atob("${wasm}"), (character) => character.charCodeAt(0))
export default (options) => load({ ...options, wasmBinary: bytes })
`
