#include "tools/scene_options.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>

#include "src/base/error.h"
#include "tools/arguments.h"

namespace catenary {
namespace {

constexpr int kMostRanks = 512;
constexpr int kMostLanes = 64;
constexpr int kMostUnits = 1'000'000;

// Of uneven parts, and of a barrier, the schedule is that of the collective they are a form of.
const Algorithm& algorithm_of(Collective collective, std::string_view name) {
  std::string known;
  for (const Algorithm& algorithm : algorithms()) {
    if (!performs(algorithm, collective)) continue;
    if (plain(algorithm.name) == plain(name)) return algorithm;
    if (algorithm.inside.empty())
      known += (known.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  throw_error(ErrorCode::kInvalidUsage,
              "%s has no algorithm \"%s\"; it has %s, and the pairs that catenary list prints",
              std::string(name_of(collective)).c_str(), std::string(name).c_str(), known.c_str());
}

// The shortest that are as long as there are of them, or longer, where that is what it is about.
int usual_box(const picture::Scene& scene) {
  if (scene.algorithm->inside.empty()) return 1;
  int box = 1;
  while (scene.ranks % box != 0 || box * box < scene.ranks) ++box;
  return box;
}

constexpr option kOptions[] = {
    {"ranks", required_argument, nullptr, 'n'},  {"root", required_argument, nullptr, 'r'},
    {"box", required_argument, nullptr, 'b'},    {"lanes", required_argument, nullptr, 'l'},
    {"window", required_argument, nullptr, 'w'}, {"units", required_argument, nullptr, 'u'},
    {"whole", no_argument, nullptr, 'W'},        {"format", required_argument, nullptr, 'f'},
    {"in-place", no_argument, nullptr, 'i'},     {"out", required_argument, nullptr, 'o'},
    {"help", no_argument, nullptr, 'h'},         {nullptr, 0, nullptr, 0}};

}  // namespace

bool read_scene_options(int argc, char** argv, SceneOptions& options) {
  picture::Scene& scene = options.scene;
  scene.ranks = 0;
  scene.root = kNobody;
  scene.lanes = 0;
  scene.box = 0;
  for (int found = 0; (found = next_option(argc, argv, "h", kOptions)) != -1;) {
    switch (found) {
      case 'n': scene.ranks = number_of("ranks", optarg, 1, kMostRanks); break;
      case 'r': scene.root = number_of("root", optarg, 0, kMostRanks - 1); break;
      case 'b': scene.box = number_of("box", optarg, 1, kMostRanks); break;
      case 'l': scene.lanes = number_of("lanes", optarg, 1, kMostLanes); break;
      case 'w': scene.window = number_of("window", optarg, 1, kMostRanks); break;
      case 'u': options.units = range_of("units", optarg, 1, kMostUnits); break;
      case 'W': options.whole = true; break;
      case 'f': options.format = optarg; break;
      case 'i': options.in_place = true; break;
      case 'o': options.out = optarg; break;
      default: return false;  // --help
    }
  }
  if (argc - optind < 2) {
    throw_error(ErrorCode::kInvalidUsage, "name a collective and an algorithm: see catenary list");
  }
  refuse_more(argc, argv, optind + 2);
  const Collective asked = collective_of(argv[optind]);
  scene.algorithm = &algorithm_of(asked, argv[optind + 1]);
  if (asked != scene.algorithm->collective) scene.form = asked;
  if (scene.ranks == 0) throw_error(ErrorCode::kInvalidUsage, "--ranks is missing");
  if (scene.box == 0) scene.box = usual_box(scene);
  if (scene.root == kNobody) scene.root = is_point_to_point(scene) && scene.ranks > 1 ? 1 : 0;
  if (scene.lanes == 0) scene.lanes = scene.algorithm->lanes;
  return true;
}

void write_out(const std::string& file, const std::string& text) {
  if (file.empty()) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fflush(stdout) != 0) {
      throw_system_error("cannot write to standard output", errno);
    }
    return;
  }
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(file.c_str(), "w"), std::fclose);
  if (out == nullptr) throw_system_error("cannot write " + file, errno);
  if (std::fwrite(text.data(), 1, text.size(), out.get()) != text.size() ||
      std::fclose(out.release()) != 0) {
    throw_system_error("cannot write " + file, errno);
  }
}

}  // namespace catenary
