// An env in C, stepped by effect-rl as a process (docs/foreign-envs.md): walk ten steps to the right, against some wind.
//   cc -O2 -o corridor examples/foreign-envs/corridor.c
//   ForeignEnv.command(["./corridor"], { id: "corridor" })
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint32_t random; float at; int steps; } Corridor;

static void read_all(void *into, size_t size) {
  if (size > 0 && fread(into, 1, size, stdin) != size) exit(0); // effect-rl has ended.
}

static void reply(const void *body, uint32_t size) {
  uint32_t header[2] = {size, 0};
  fwrite(header, 4, 2, stdout);
  fwrite(body, 1, size, stdout);
  fflush(stdout);
}

static void start(Corridor *env, uint32_t seed) {
  *env = (Corridor){seed | 1, 0, 0};
}

static void step(Corridor *env, int32_t action) {
  env->random = env->random * 1664525u + 1013904223u;
  float wind = (env->random >> 24) < 26 ? -1 : 0; // One step in ten, it blows.
  env->at += (action == 1 ? 1 : -1) + wind;
  if (env->at < 0) env->at = 0;
  env->steps++;
}

int main(void) {
  Corridor *envs = NULL;
  uint32_t count = 0, header[2];
  for (;;) {
    read_all(header, 8);
    uint8_t *body = calloc(1, header[0] + 1);
    read_all(body, header[0]);
    if (header[1] == 0) {
      count = atoi(strstr((char *)body, "\"count\":") + 8);
      envs = realloc(envs, (count + 1) * sizeof(Corridor));
      const char *text = "{\"protocol\":1,\"observationType\":\"float32\",\"maxSteps\":60,"
                         "\"observationSpace\":{\"type\":\"Box\",\"shape\":[1],\"low\":0,\"high\":10},"
                         "\"actionSpace\":{\"type\":\"Discrete\",\"n\":2}}";
      reply(text, strlen(text));
    } else { // Seeds, actions and commands; the answer has rewards, observations, final observations and flags.
      uint32_t *seeds = (uint32_t *)body, ended = 0;
      int32_t *actions = (int32_t *)(body + 4 * count);
      uint8_t *commands = body + 8 * count, *answer = calloc(count + 1, 14), flags[2 * count + 1];
      float *rewards = (float *)answer, *seen = rewards + count, *finals = seen + count;
      memset(flags, 0, sizeof flags);
      for (uint32_t i = 0; i < count; i++) {
        int ends = commands[i] == 3;
        if (commands[i] == 1 || commands[i] == 2) {
          step(&envs[i], actions[i]);
          flags[i] = envs[i].at >= 10;
          rewards[i] = flags[i] ? 1 : -0.01f;
          ends = flags[i] || commands[i] == 2;
          if (ends) finals[ended++] = envs[i].at;
        }
        if (ends) start(&envs[i], seeds[i]);
        seen[i] = envs[i].at;
      }
      memcpy(finals + ended, flags, 2 * count);
      reply(answer, 10 * count + 4 * ended);
      free(answer);
    }
    free(body);
  }
}
