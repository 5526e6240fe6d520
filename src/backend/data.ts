import { type DType, type Shape, sizeOf } from "../graph/Tensor.ts"
import type { TensorData } from "./Backend.ts"

/** The array that holds a tensor outside of a program. */
export const dataFor = ({ shape, dtype }: { readonly shape: Shape; readonly dtype: DType }): TensorData =>
  dtype === "f32"
    ? new Float32Array(sizeOf(shape))
    : dtype === "i32"
      ? new Int32Array(sizeOf(shape))
      : new Uint8Array(sizeOf(shape))
