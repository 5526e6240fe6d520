import { assert, describe, it } from "vitest"
import { failureOf, remedyOf } from "../../../src/tensor/backend/gpuRemedies.ts"

const failedToLoad = (library: string): string =>
  `Failed to load library libonnxruntime_providers_cuda.so with error: ${library}: cannot open shared object file: No such file or directory`

describe("what to do about a device that is not available", () => {
  const cases: ReadonlyArray<readonly [string, string]> = [
    [
      failedToLoad("libcudnn.so.9"),
      "Install cuDNN 9 for CUDA 12 (NVIDIA's package libcudnn9-cuda-12), or add the folder of libcudnn.so.9",
    ],
    [failedToLoad("libcublasLt.so.12"), "Install the runtime libraries of CUDA 12"],
    [failedToLoad("libcudart.so.12"), "Install the runtime libraries of CUDA 12"],
    [failedToLoad("libnvrtc.so.12"), "Install the runtime libraries of CUDA 12"],
    [failedToLoad("libcuda.so.1"), "Install the NVIDIA driver"],
    ["CUDA failure 100: no CUDA-capable device is detected", "nvidia-smi must list a GPU"],
    ["CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version", "nvidia-smi must list a GPU"],
    ["onnxruntime-node came without libonnxruntime_providers_cuda.so", "It needs Linux on x64, an NVIDIA GPU"],
  ]
  for (const [missing, expected] of cases)
    it(`names what is missing: ${missing}`, () => {
      const remedy = remedyOf("cuda", missing)
      assert.isTrue(remedy.startsWith(expected), remedy)
      assert.match(remedy, /docs\/gpu\.md has the steps$/)
    })

  it("does not blame CUDA where another device is missing", () =>
    assert.include(remedyOf("webgpu", failedToLoad("libcudnn.so.9")), "Vulkan loader"))
})

describe("the line about a program that failed on a GPU", () => {
  const cases: ReadonlyArray<readonly [string, string]> = [
    [
      "failed to call OrtRun(). ERROR_CODE: 1, ERROR_MESSAGE: /build/x/buffer_manager.cc:643 void f(WGPUBuffer, void *) const status == Success was false. Failed to execute 'mapAsync' on 'GPUBuffer': The Device was lost before mapping was resolved.",
      "the GPU was lost (Failed to execute 'mapAsync' on 'GPUBuffer': The Device was lost before mapping was resolved); resume the run from its last checkpoint",
    ],
    [
      "WebGPU validation failed. Buffer size (1600000000) exceeds the max buffer size limit (1073741824).; - While calling [Device].CreateBuffer([BufferDescriptor]).",
      "the GPU has no room for this program (WebGPU validation failed. Buffer size (1600000000) exceeds the max buffer size limit (1073741824)); use fewer envs, smaller minibatches or a smaller model",
    ],
    [
      "WebGPU validation failed. [Invalid Buffer (unlabeled)] is invalid due to a previous error.; - While validating entries[2]",
      "the GPU has no room for this program (WebGPU validation failed. [Invalid Buffer (unlabeled)] is invalid due to a previous error); use fewer envs, smaller minibatches or a smaller model",
    ],
    [
      "Non-zero status code returned while running Add node. Name:'' Status Message: CUDA failure 2: out of memory",
      "the GPU has no room for this program (Non-zero status code returned while running Add node. Name:'' Status Message: CUDA failure 2: out of memory); use fewer envs, smaller minibatches or a smaller model",
    ],
    ["Got invalid dimensions for input: x\nfor the following indices", "Got invalid dimensions for input: x"],
  ]
  for (const [message, expected] of cases) it(expected, () => assert.strictEqual(failureOf(message), expected))
})
