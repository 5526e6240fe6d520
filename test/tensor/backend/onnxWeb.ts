/** Loads ONNX Runtime for the web, an optional package. */
import type { WebRuntime } from "../../../src/tensor/backend/onnx-web.ts"

// The name is a variable, so that the types of this project can be checked where the package is not installed.
const name = "onnxruntime-web"
export const ort: WebRuntime = await import(/* @vite-ignore */ name)
