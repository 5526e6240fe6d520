/** Declares what an edge worker gets when it imports a file of WebAssembly: the compiled module. */
declare module "*.wasm" {
  const module: WebAssembly.Module
  export default module
}
