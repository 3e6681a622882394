plugins {
    id("com.android.application") version "8.7.3"
}

// Those that the AAR has.
val abis = listOf("arm64-v8a", "x86_64")

android {
    namespace = "org.collectord.example"
    compileSdk = 35
    ndkVersion = "27.2.12479018"
    defaultConfig {
        applicationId = "org.collectord.example"
        minSdk = 29
        targetSdk = 35
        versionCode = 1
        versionName = "1.0"
        ndk { abiFilters += abis }
    }
    buildFeatures { prefab = true }
    externalNativeBuild {
        cmake {
            path = file("src/main/cpp/CMakeLists.txt")
            version = "3.22.1"
        }
    }
    packaging {
        jniLibs {
            useLegacyPackaging = true // libraries are unpacked, so wrap.sh is a file
            // The AAR has the library for linking (Prefab) and for apps that only preload it (jni/).
            pickFirsts += "**/libcollect_agent.so"
        }
    }
    // wrap.sh beside the libraries of the debug build, which alone runs it.
    sourceSets["debug"].resources.srcDir(layout.buildDirectory.dir("wrap"))
}

val wrapScripts = tasks.register<Copy>("wrapScripts") {
    into(layout.buildDirectory.dir("wrap"))
    for (abi in abis) {
        from(rootDir.resolve("../wrap.sh")) { into("lib/$abi") }
    }
}
tasks.matching { it.name == "processDebugJavaRes" }.configureEach { dependsOn(wrapScripts) }

dependencies {
    implementation("org.collectord:collect-agent:0.1.0")
}
