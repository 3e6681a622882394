// swift-tools-version:5.9
// The agent as a Swift package: is beside CollectAgent.xcframework, which deploy/agents.sh makes.
import PackageDescription

let package = Package(
    name: "CollectAgent",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [
        .library(name: "CollectAgent", targets: ["CollectAgent"])
    ],
    targets: [
        .binaryTarget(name: "CollectAgent", path: "CollectAgent.xcframework")
    ]
)
