// RLtools' half of benchmarks/engine.py: its PPO on the trivial workload, one iteration a line.
//
// Compiled by engine_rltools.py with NUM_ENVS, HIDDEN, BATCH, STEPS, EPOCHS, OBSERVED, ACTIONS as
// macros, since every size is known at compile time there. Its policy is Gaussian: the last layer
// gives ACTIONS means, as many outputs as our workload has choices. Numbers observed are uniform
// with a deviation of 1, which costs less than normal ones.

#include <rl_tools/operations/cpu_mux.h>

#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>
#include <rl_tools/nn/operations_cpu_mux.h>
#include <rl_tools/nn/layers/standardize/operations_generic.h>
#include <rl_tools/nn_models/mlp_unconditional_stddev/operations_generic.h>
#include <rl_tools/nn_models/sequential/operations_generic.h>
#include <rl_tools/nn/optimizers/adam/operations_generic.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <string>

namespace rlt = rl_tools;

using Device = rlt::devices::DEVICE_FACTORY<>;
using Index = Device::index_t;
using Random = Device::SPEC::RANDOM::ENGINE<>;
using Policy = rlt::numeric_types::Policy<float>;

struct Numbers {
    static constexpr Index DIM = OBSERVED;
};
struct Noise {  // what is observed depends on nothing
    using T = float;
    using TI = Index;
    struct State {
        uint64_t seed;
    };
    struct Parameters {};
    using Observation = Numbers;
    using ObservationPrivileged = Numbers;
    static constexpr Index N_AGENTS = 1, ACTION_DIM = ACTIONS, EPISODE_STEP_LIMIT = 128;
};

static inline float next(uint64_t& seed) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (static_cast<int32_t>(seed >> 32)) * (1.7320508f / 2147483648.0f);
}

namespace rl_tools {
void malloc(Device&, const Noise&) {}
void free(Device&, const Noise&) {}
void init(Device&, const Noise&) {}
void initial_parameters(Device&, const Noise&, Noise::Parameters&) {}
void sample_initial_parameters(Device&, const Noise&, Noise::Parameters&, Random&) {}
void initial_state(Device&, const Noise&, Noise::Parameters&, Noise::State& state) {
    state.seed = 1;
}
void sample_initial_state(
    Device&, const Noise&, Noise::Parameters&, Noise::State& state, Random& random) {
    state.seed = random.engine();
}
template <typename ACTION>
float step(Device&, const Noise&, Noise::Parameters&, const Noise::State& state,
           const Matrix<ACTION>&, Noise::State& after, Random&) {
    after = state;
    next(after.seed);
    return 1;
}
template <typename ACTION>
float reward(Device&, const Noise&, Noise::Parameters&, const Noise::State&,
             const Matrix<ACTION>& action, const Noise::State& after, Random&) {
    uint64_t seed = after.seed;
    return next(seed) * get(action, 0, 0);
}
template <typename OBSERVATION>
void observe(Device&, const Noise&, const Noise::Parameters&, const Noise::State& state,
             const Numbers&, Matrix<OBSERVATION>& into, Random&) {
    uint64_t seed = state.seed;
    for (Index i = 0; i < OBSERVED; i++) set(into, 0, i, next(seed));
}
bool terminated(Device&, const Noise&, Noise::Parameters&, const Noise::State&, Random&) {
    return false;
}
}  // namespace rl_tools

#include <rl_tools/rl/components/on_policy_runner/operations_generic.h>
#include <rl_tools/rl/algorithms/ppo/loop/core/config.h>
#include <rl_tools/rl/algorithms/ppo/loop/core/operations_generic.h>

namespace core = rlt::rl::algorithms::ppo::loop::core;

struct Sizes : core::DefaultParameters<Policy, Index, Noise> {
    static constexpr auto ACTOR_ACTIVATION_FUNCTION =
        rlt::nn::activation_functions::ActivationFunction::TANH;
    static constexpr auto CRITIC_ACTIVATION_FUNCTION = ACTOR_ACTIVATION_FUNCTION;
    static constexpr Index ACTOR_HIDDEN_DIM = HIDDEN, CRITIC_HIDDEN_DIM = HIDDEN;
    static constexpr Index ACTOR_NUM_LAYERS = 3, CRITIC_NUM_LAYERS = 3;  // the last one counts
    static constexpr Index EPISODE_STEP_LIMIT = 128, N_ENVIRONMENTS = NUM_ENVS;
    static constexpr Index ON_POLICY_RUNNER_STEPS_PER_ENV = STEPS;
    static constexpr Index BATCH_SIZE = BATCH;
    struct PPO_PARAMETERS : rlt::rl::algorithms::ppo::DefaultParameters<Policy, Index, BATCH> {
        static constexpr Index N_EPOCHS = EPOCHS;
    };
};
using Config = core::Config<Policy, Index, Random, Noise, Sizes>;
using Loop = Config::State<Config>;

static double processor() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static double wall() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

static void collect(Device& device, Loop& loop) {
    auto& rollout = loop.on_policy_runner_dataset;
    rlt::collect(
        device, rollout, loop.on_policy_runner, loop.ppo.actor, loop.actor_eval_buffers, loop.rng);
    auto seen = rlt::to_tensor(device, rollout.all_observations_privileged);
    auto seen_once = rlt::unsqueeze(device, seen);
    auto values = rlt::to_tensor(device, rollout.all_values);
    auto values_once = rlt::unsqueeze(device, values);
    rlt::evaluate(
        device, loop.ppo.critic, seen_once, values_once, loop.critic_buffers_gae, loop.rng);
    rlt::estimate_generalized_advantages(
        device, rollout, Config::PPO_TYPE::SPEC::PARAMETERS{});
}

static void update(Device& device, Loop& loop) {
    rlt::train(device, loop.ppo, loop.on_policy_runner_dataset, loop.actor_optimizer,
               loop.critic_optimizer, loop.ppo_buffers, loop.actor_buffers, loop.critic_buffers,
               loop.rng);
}

int main() {
    static Device device;
    static Loop loop;
    rlt::init(device);
    rlt::malloc(device, loop);
    rlt::init(device, loop, 1);
    collect(device, loop);
    update(device, loop);
    std::cout.precision(9);
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        double began = wall(), spent = processor();
        collect(device, loop);
        double middle = wall(), between = processor();
        update(device, loop);
        std::cout << middle - began << ' ' << between - spent << ' ' << wall() - middle << ' '
                  << processor() - between << std::endl;
    }
}
