import { assert, describe, it } from "vitest"
import { remedyOf } from "../../src/backend/gpuRemedies.ts"

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
